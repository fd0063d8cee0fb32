"""Checks of the convolution in self-attention's place: how wide it is, and how far its layers see."""

from tfm.model.config_fields import ModelFields
from tfm.model.config_tables import ConvolutionConfig


def convolution_table_problem(config: ModelFields) -> str | None:
    if config.convolution != ConvolutionConfig() and "convolution" not in config.mixings:
        return f'model.convolution is for mixing = "convolution", not "{config.mixing}"'
    return None


def convolution_width_problem(config: ModelFields) -> str | None:
    if config.convolution.width is not None and config.window is not None:
        return f"convolution.width = {config.convolution.width} replaces window = {config.window}: remove one"
    return None


def convolution_dilation_problem(config: ModelFields) -> str | None:
    """Layers after the first read rows that are farther apart, and none farther than a text can be long."""
    dilation = config.convolution.dilation
    sides = [side for side in config.text_stacks if config.stack_mixing(side) == "convolution"]
    if dilation == 1 or not sides:
        return None
    if config.convolution.width == 1:
        return f"convolution.dilation = {dilation} has no effect with convolution.width = 1: one row has no distance"
    layers = {side: getattr(config, side).layers for side in sides}
    if max(layers.values()) < 2:
        return f"convolution.dilation = {dilation} is of layers after the first: set {sides[-1]}.layers to 2 or more"
    for side, number in layers.items():
        offsets = config.convolution_offsets(number - 1, causal=side == "decoder")
        if max(-offsets[0], offsets[-1]) > config.max_length:
            return (
                f"convolution.dilation = {dilation}: layer {number} of the {side} reads rows {-offsets[0]:,} before "
                f"its own, and a text has at most max_length = {config.max_length:,}: fewer layers, or a smaller one"
            )
    return None
