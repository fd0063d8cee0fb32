"""Labels without torch: those of `label_texts`, of lines that are empty, cut, or have words without pieces, too."""

import pytest

from tests.tiny_model import tiny_model
from tests.unit.model.numpy_inference.test_numpy_encoder_only import BASE, network_of
from tfm.pipeline.config import DecodingConfig
from tfm.pipeline.inference.labelling import label_texts
from tfm.pipeline.inference.numpy_labels import NumpyLabeller, supports_numpy_labelling
from tfm.pipeline.inference.source_problems import SourceProblems

LINES = ["the old dog", "", "   ", "a \u200b b", "ein " * 60, "дом 家 the", "the"]


@pytest.mark.parametrize(("task", "n_best"), [("classification", 1), ("classification", 3), ("tagging", 1)])
def test_labels_and_warnings_are_those_of_torch(task: str, n_best: int) -> None:
    loaded = tiny_model(task=task, **BASE)
    labeller = NumpyLabeller(network_of(loaded), loaded.source_tokenizer, loaded.target_tokenizer, task == "tagging")
    ours, theirs = SourceProblems(), SourceProblems()
    found = list(labeller.translate(LINES, DecodingConfig(n_best=n_best), ours))
    wanted = list(label_texts(loaded, LINES, theirs, n_best=n_best))
    assert [[each.text for each in line] for line in found] == [[text for text, *_ in line] for line in wanted]
    assert [[each.num_tokens for each in line] for line in found] == [[count for *_, count in line] for line in wanted]
    for line, others in zip(found, wanted, strict=True):
        assert [each.log_prob for each in line] == pytest.approx([log_prob for _, log_prob, _ in others], abs=1e-4)
    assert ours == theirs
    assert ours.cut == 1
    assert {len(line) for line in wanted} == {1, n_best}


def test_settings_of_a_search_are_left_to_torch_which_refuses_them() -> None:
    assert supports_numpy_labelling(DecodingConfig(), tags=True)
    assert supports_numpy_labelling(DecodingConfig(n_best=4), tags=False)
    assert not supports_numpy_labelling(DecodingConfig(n_best=4), tags=True)
    assert not supports_numpy_labelling(DecodingConfig(beam=3), tags=False)
    assert not supports_numpy_labelling(DecodingConfig(precision="fp32"), tags=False)
