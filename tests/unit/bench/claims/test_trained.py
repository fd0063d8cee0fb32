"""Claims of trained models: how they read what was trained, on tiny ones."""

import json
import math
from pathlib import Path
from random import Random

import numpy as np
import pytest
import sacrebleu
import torch

from bench.claims.attention import align, heads, parallel
from bench.claims.block import block, depth, landscape
from bench.claims.decoding import ensembles
from bench.claims.positions import extrapolation, order
from bench.claims.positions.extrapolation import draw_strings
from bench.claims.recurrence import bottleneck, cue, lengths, windows
from bench.claims.training import curricula, data, dropout, pretraining, smoothing, thinning, widths
from bench.claims.words import meaning, subwords
from bench.processes import ROOT
from tfm.data.synthetic.grammar import generate
from tfm.model.build import build
from tfm.model.config import ModelConfig
from tfm.model.layout import Layout
from tfm.model.transformer.encoder_decoder import EncoderDecoder
from tfm.pipeline.recipes.recipe import load_recipe


@pytest.mark.parametrize(
    ("recipe", "sets"),
    [
        *(
            (depth.RECIPE, [f"model.decoder.layers={layers}", *sets])
            for layers in (2, 24)
            for sets in depth.MODELS.values()
        ),
        *((block.RECIPE, [*sets, "seed=3"]) for sets in block.MODELS.values()),
        *((extrapolation.RECIPE, [f"model.positions={scheme}"]) for scheme in extrapolation.SCHEMES),
        *((extrapolation.TEXT_RECIPE, [f"model.positions={scheme}"]) for scheme in extrapolation.SCHEMES),
        *((heads.RECIPE, [f"model.encoder.heads={number}"]) for number in heads.NUMBERS),
        *((align.RECIPE, sets) for sets in align.MODELS.values()),
        (meaning.RECIPE, []),
        *((bottleneck.RECIPE, sets) for sets in bottleneck.MODELS.values()),
        *((data.RECIPE, ["data.train.0.size=1000", *sets]) for sets in data.MODELS.values()),
        *((data.RECIPE, widths.width_settings(width)) for width in widths.WIDTHS),
        *((data.RECIPE, [*ensembles.SETTINGS, *sets]) for sets in ensembles.DIRECTIONS.values()),
        *((cue.RECIPE, sets) for sets in cue.MODELS.values()),
        *((lengths.RECIPE, sets) for sets in lengths.MODELS.values()),
        *((curricula.recipe(strategy), []) for strategy in curricula.STRATEGIES),
        (pretraining.MASKED, ["training.max_epochs=30"]),
        (smoothing.RECIPE, ["training.label_smoothing=0.0"]),
        (depth.RECIPE, ["model.norm=post", "training.schedule.warmup_steps=1"]),
        (dropout.RECIPE, ["model.dropout.residual=0.3"]),
        (order.COPY_RECIPE, ["model.positions=sinusoidal"]),
    ],
)
def test_what_a_claim_sets_is_a_recipe(recipe: str, sets: list[str]) -> None:
    load_recipe(ROOT / recipe, sets)


def test_losses_of_depth_are_means_of_seeds_unless_one_diverged() -> None:
    losses = {"pre-norm": [[4.0, 5.0], [4.5, 4.5]], "no norm": [[4.0, 4.2], [5.0, 5044.4]]}
    found = {"depths": [2, 24], "seeds": [1, 2], "losses": losses}
    assert [*depth.figures(found).values()] == ["4.50 ± 0.71", "4.50 ± 0.00", "4.10 ± 0.14", "5.00, 5,044.40"]
    assert depth.format_losses([4.0, float("nan")]) == "4.00, nan"
    assert len(depth.draw(found).axes[0].containers) == 2


def test_the_recipe_of_meaning_has_the_lines_and_the_window_that_are_counted() -> None:
    recipe = load_recipe(ROOT / meaning.RECIPE, [])
    assert recipe.model.word_vectors.window == meaning.WINDOW
    (corpus,) = recipe.data.train  # type: ignore[misc]
    assert corpus.size == meaning.SIZE


def test_contexts_are_counted_on_both_sides_as_far_as_the_window() -> None:
    lines = [meaning.split_words("Der Hund schläft, der Hund träumt.")]
    assert lines == [["Der", "Hund", "schläft", ",", "der", "Hund", "träumt", "."]]
    counts = meaning.count_contexts(lines, ["Hund", "schläft"])
    vocabulary = [",", ".", "Der", "Hund", "der", "schläft", "träumt"]
    first = dict(zip(vocabulary, counts[0], strict=True))
    assert first == {",": 2, ".": 1, "Der": 1, "Hund": 0, "der": 1, "schläft": 1, "träumt": 1}
    assert dict(zip(vocabulary, counts[1], strict=True)) == {
        **dict.fromkeys(vocabulary, 0), "Der": 1, "Hund": 1, ",": 1, "der": 1
    }  # fmt: skip


def test_mutual_information_of_counts() -> None:
    found = meaning.positive_mutual_information(np.array([[3.0, 1.0], [0.0, 4.0]]))
    assert found == pytest.approx(np.array([[math.log(3 * 8 / (4 * 3)), 0], [0, math.log(4 * 8 / (4 * 5))]]))


def test_pairs_of_one_hot_vectors_are_all_alike() -> None:
    words = [word for group in meaning.GROUPS.values() for word in group]
    pairs = meaning.split_pairs(words, meaning.cosines(np.eye(len(words))))
    assert len(pairs["related"]) == 4 * 15
    assert len(pairs["related"]) + len(pairs["others"]) == 24 * 23 // 2
    assert {*pairs["related"], *pairs["others"]} == {0.0}
    assert meaning.share_of_wins(pairs["related"], pairs["others"]) == 0.5


def test_the_share_of_wins_counts_ties_as_half() -> None:
    assert meaning.share_of_wins([3.0, 1.0], [1.0, 0.0]) == (1 + 1 + 0.5 + 1) / 4


def test_strings_have_one_length_and_are_the_same_each_time() -> None:
    assert [len(each.split()) for each in draw_strings(12, 3)] == [12] * 3
    assert draw_strings(12, 3) == draw_strings(12, 3)


def test_perplexity_at_the_end_of_windows_is_that_of_their_last_words() -> None:
    network, ids = parallel.make_network(16, 1, 64), torch.arange(5, 5 + 256 + 64)
    found = extrapolation.end_perplexity(network, ids, 32)
    losses = []
    for text in (ids[224:256], ids[288:320]):
        log_probs = parallel.decode_steps(network, torch.cat([torch.tensor([2]), text[:-1]]))
        losses += [-float(log_probs[place, text[place]]) for place in range(16, 32)]
    assert found == pytest.approx(math.exp(sum(losses) / 32), rel=1e-4)


def test_a_head_that_is_taken_away_contributes_nothing_and_comes_back() -> None:
    stack = {"layers": 1, "dim": 8, "heads": 2, "feed_forward_dim": 8}
    config = ModelConfig.model_validate({"encoder": stack, "decoder": stack})
    network = build(config, source_vocab=9, target_vocab=9, seed=2).eval()
    assert isinstance(network, EncoderDecoder)
    found = {(kind, layer): attention for kind, layer, attention in heads.list_attentions(network)}
    assert [*found] == [("encoder", 1), ("decoder", 1), ("cross", 1)]
    attention, layout = found["encoder", 1], Layout.from_lengths(torch.tensor([4]))
    mixed: list[torch.Tensor] = []
    handle = attention.output.register_forward_pre_hook(lambda _, given: mixed.append(given[0]))
    source, weight = torch.tensor([4, 5, 6, 3]), attention.output.weight
    with torch.no_grad():
        before = network.encode(source, layout)
        with heads.take_heads(attention, [1]):
            without = network.encode(source, layout)
            (rows,) = [attention.output(mixed[-1])]
            by_hand = mixed[-1][:, :4] @ network.encoder[0].attention.output.weight[:, :4].T + attention.output.bias
        assert torch.allclose(rows, by_hand, atol=1e-6)
        assert not torch.allclose(before, without)
        assert torch.equal(network.encode(source, layout), before)
    assert weight is attention.output.weight
    handle.remove()


def test_a_direction_is_as_long_as_the_rows_of_the_weights_and_none_for_vectors() -> None:
    network = torch.nn.Sequential(torch.nn.Linear(3, 5), torch.nn.LayerNorm(5))
    direction = landscape.draw_direction(network, torch.Generator().manual_seed(1))
    matrix, *vectors = direction
    assert torch.allclose(matrix.norm(dim=1), network[0].weight.norm(dim=1))
    assert not any(each.any() for each in vectors)
    start = [each.detach().clone() for each in network.parameters()]
    landscape.move_weights(network, start, [direction, direction], (0.5, -2.0))
    assert torch.allclose(network[0].weight, start[0] - 1.5 * matrix, atol=1e-6)
    landscape.move_weights(network, start, [direction, direction], (0.0, 0.0))
    assert torch.equal(network[0].weight, start[0])


def test_the_rise_is_the_mean_of_four_points_above_the_middle() -> None:
    losses = [[9.0, 2.0, 9.0], [3.0, 1.0, 4.0], [9.0, 5.0, 9.0]]
    assert landscape.mean_loss_rise({"steps": [-1.0, 0.0, 1.0], "losses": {"net": losses}}, "net", 1.0) == 2.5


def test_stacked_windows_reach_as_far_as_layers_times_reach() -> None:
    found = windows.measure(dim=8, length=40, draws=1)
    for name, by_depth in found["norms"].items():
        reached = {int(depth): windows.farthest(norms) for depth, norms in by_depth.items()}
        expected = {depth: 39 if name == "attention" else depth * windows.REACH for depth in windows.DEPTHS}
        assert reached == expected, name


def test_unknown_words_are_counted_as_words_and_pieces_as_pieces() -> None:
    texts = ["ab ab cd cd ef ef", "gh gh ij"]
    tokenizer = subwords.train(texts, subwords.make_config("word", 8))
    assert subwords.describe(tokenizer, ["ab gh ij cd ij xy"]) == {"pieces": 1.0, "unknown": 50.0}
    letters = subwords.train(texts, subwords.make_config("char", 100))
    assert subwords.describe(letters, ["ab cd"])["pieces"] == pytest.approx(5 / 2)  # and the space


def test_means_and_deviations_of_seeds() -> None:
    found = {"scores": {"bleu": {"0.0": [1.0, 2.0, 3.0]}}}
    assert smoothing.figures(found) == {"bleu, eps = 0.0": "2.00 ± 1.00"}


def test_the_lowest_validation_loss_is_told_with_its_update() -> None:
    curves = {"validation": [[50.0, 100.0, 150.0], [2.0, 1.0, 3.0]], "train": [[50.0], [0.5]]}
    found = dropout.figures({"curves": {"0.1": curves}})
    assert [*found.values()] == ["1.00", "100", "3.00", "0.50"]


def test_the_loss_of_texts_side_by_side_is_the_mean_of_what_each_says_step_by_step() -> None:
    network, texts = parallel.make_network(16, 1, 64), [[7, 8, 9], [5]]
    losses = []
    for text in texts:
        log_probs = parallel.decode_steps(network, torch.tensor([2, *text]))
        losses += [-float(log_probs[place, number]) for place, number in enumerate([*text, 3])]
    assert landscape.mean_loss(network, texts) == pytest.approx(sum(losses) / len(losses), rel=1e-4)


def test_error_rates_are_those_of_heads_alone() -> None:
    """Means of layers are no heads; each rate that is quoted is the least, or the most, of those that a row has."""
    heads_of = [
        {"layer": layer, "head": head, "shifted": shifted, "aer": 10.0 * layer + (head or 9) + 50 * shifted}
        for layer in (1, 2)
        for head in (None, 1, 2)
        for shifted in (False, True)
    ]
    model = {"bleu": 30.0, "heads": sorted(heads_of, key=lambda each: each["aer"])}
    assert align.error_rates(model) == [11, 12, 21, 22]
    assert align.error_rates(model, 2, shifted=True) == [71, 72]
    better = {"bleu": 32.0, "heads": [each | {"aer": each["aer"] - 2} for each in model["heads"]]}
    quoted = align.figures({"LSTM": [model, better]})
    assert quoted["BLEU, LSTM"] == "31.0 ± 1.4"
    assert quoted["AER of the best head, LSTM"] == "10.0 ± 1.4 %"
    assert quoted["AER of the worst head, LSTM"] == "21.0 ± 1.4 %"
    assert quoted["AER of the mean of layer 2, LSTM"] == "28.0 ± 1.4 %"


def test_the_verb_of_a_question_agrees_with_its_last_noun_whatever_stands_before() -> None:
    random, labels = Random(3), []
    for phrases in (0, 1, 5) * 20:
        label, question = cue.write_question(random, phrases)
        words = [label, *question.split()]
        assert len(words) - 1 == 3 + cue.PHRASE_WORDS * phrases  # from the verb to the noun
        assert label == ("do" if words[-1].endswith("s") else "does")
        labels.append(label)
    assert {*labels} == {*cue.LABELS}


def test_texts_of_several_sentences_end_before_the_limit_and_keep_their_translations_side_by_side() -> None:
    pairs = list(lengths.join_sentences("valid", 40))
    counts = [len(german.split()) for _, german in pairs]
    assert max(counts) <= lengths.MAX_WORDS
    assert max(counts) > 60 > 20 > min(counts)
    english, german = zip(*generate("valid", 800, 1), strict=True)
    one, other = pairs[0]
    assert " ".join(english).startswith(one)
    assert " ".join(german).startswith(other)


def test_bleu_by_length_is_that_of_the_texts_of_a_length() -> None:
    references = ["a b c d", "a b c d e", "a b c d e f g h i"]
    texts = ["a b c d", "x y z v w", "a b c d e f g h j"]
    short, long = lengths.bleu_by_length(texts, references, (5, 10))
    assert short == pytest.approx(sacrebleu.corpus_bleu(texts[:2], [references[:2]]).score)
    assert long == pytest.approx(sacrebleu.corpus_bleu(texts[2:], [references[2:]]).score)


def test_networks_without_dropout_are_all_the_same_and_their_mean_is_one_of_them() -> None:
    torch.manual_seed(0)
    images, labels = torch.rand(50, 12), torch.randint(10, (50,))
    plain = thinning.make_network(12, 8, 0.0)
    assert thinning.thinned_errors(plain, images, labels, (1, 3)) == [thinning.error(plain, images, labels)] * 2
    dropped = thinning.make_network(12, 8, 0.5)
    dropped[-1].weight.data *= 50
    errors = thinning.thinned_errors(dropped, images, labels, (1, 2, 3, 40))
    assert len({*errors}) > 1


def test_active_units_are_those_above_zero() -> None:
    network = thinning.make_network(2, 3, 0.5)
    with torch.no_grad():
        network[1].weight.copy_(torch.tensor([[1.0, 0.0], [-1.0, 0.0], [0.0, 1.0]]))
        network[1].bias.zero_()
    found = thinning.describe_activations(network, torch.tensor([[1.0, 2.0], [3.0, -1.0]]))
    assert found == {"mean": pytest.approx((1 + 2 + 3) / 6), "active": pytest.approx(50)}


def test_every_test_set_of_a_curriculum_is_read_by_its_name(tmp_path: Path) -> None:
    (tmp_path / "scores").mkdir()
    (first, *others) = (
        {"split": name, "metrics": {"exact_match": {"score": score}}} for name, score in (("a", 1), ("b", 2), ("c", 3))
    )
    document = {**first, "others": {each["split"]: each for each in others}}
    (tmp_path / "scores" / "scores.json").write_text(json.dumps(document), encoding="utf-8")
    assert curricula.exact_by_test(tmp_path) == {"a": 1.0, "b": 2.0, "c": 3.0}


def test_characters_of_a_curriculum_are_a_percentage(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    names = [f"digits_{digits}_nested_{nesting}" for digits, nesting in curricula.SIZES]
    monkeypatch.setattr(curricula, "run_recipe", lambda recipe, name, *sets: tmp_path / Path(recipe).stem)
    monkeypatch.setattr(curricula, "exact_by_test", lambda run: dict.fromkeys(names, 12.5))
    monkeypatch.setattr(curricula, "read_score", lambda run, figure: 0.25)
    found = curricula.measure()
    assert found["characters"] == dict.fromkeys(curricula.STRATEGIES, 25.0)
    assert {*curricula.figures(found).values()} == {"12.5 %", "25.0 %"}


def test_figures_of_seeds_are_means_and_deviations() -> None:
    of_seeds = [{"bleu": 1.0, "loss": 2.0}, {"bleu": 3.0, "loss": 2.0}]
    found = data.figures({"sizes": [1000], "scores": {"LSTM": [of_seeds]}})
    assert [*found.values()] == ["2.0 ± 1.4", "2.00 ± 0.00"]
    found = pretraining.figures({"labels": [173], "accuracy": {pretraining.SCRATCH: [[60.0, 62.0]]}})
    assert [*found.values()] == ["61.0 ± 1.4 %"]
