"""Games: what the parties know decides the word, and the answer is that of the task's own definition."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from cases import each
from vitrify.bounds import games
from vitrify.bounds.games import Game
from vitrify.errors import InputError

GAMES = [
    *(games.index_game(n) for n in (1, 2, 5)),
    games.index_game(3, ("x", "y", "z")),
    games.index_game(2, ("a", "b", "c", "d", "e")),
    *(games.match3_game(n) for n in (1, 2, 3, 4)),
    *(games.averaging_game(q) for q in (1, 2, 4)),
    *(games.composition_game(n, x) for n in (2, 3) for x in range(n)),
    games.recall_game("klm", "xyz"),
    games.pointer_game(5),
    games.copy_game(4, "abc", "|"),
]


def questions(game: Game) -> list[object]:
    """All questions where they are sets or functions, else those listed."""
    if game.name in ("match3", "sparse-averaging") and isinstance(game.questions[0], tuple):
        return list(product((0, 1), repeat=game.size))
    if game.name == "composition":
        return list(product(range(game.size), repeat=game.size))
    return list(game.questions)


@each("game", GAMES, ids=lambda game: f"{game.name}-{game.size}")
def test_what_the_parties_know_is_the_answer_to_the_word(game: Game) -> None:
    for alice in game.numbered(0, game.inputs).tolist():
        for bob in questions(game):
            (word,) = game.words(alice, bob)
            assert len(word) == game.length
            assert game.label(alice, bob) == game.truth(word.tolist())


@each("game", GAMES, ids=lambda game: f"{game.name}-{game.size}")
def test_two_inputs_have_a_question_that_tells_them_apart(game: Game) -> None:
    inputs = game.numbered(0, game.inputs).tolist()
    assert len({tuple(alice) for alice in inputs}) == game.inputs == round(2**game.needed)
    for first, second in product(inputs[:20], repeat=2):
        if first != second:
            question = game.question(first, second)
            assert game.label(first, question) != game.label(second, question)


@each("game", GAMES, ids=lambda game: f"{game.name}-{game.size}")
def test_everybody_sees_only_his_own_places(game: Game) -> None:
    inputs, asked = game.numbered(0, min(game.inputs, 8)), questions(game)[:8]
    for alice in inputs:
        words = np.concatenate([game.words(alice, bob) for bob in asked])
        assert (words[:, list(game.places)] == words[0, list(game.places)]).all()
    for bob in asked:
        words = game.words(inputs, bob)
        assert (words[:, list(game.others)] == words[0, list(game.others)]).all()


def test_an_induction_word_by_hand() -> None:
    game = games.index_game(3)
    assert game.spell(game.words([0, 1, 0], 1)[0]) == ["#", "0", "?", "1", "#", "0", "?"]
    assert game.label([0, 1, 0], 1) == "1"


def test_long_games_can_be_counted() -> None:
    assert games.index_game(100).numbered(5, 2)[:, :4].tolist() == [[1, 0, 1, 0], [0, 1, 1, 0]]


def test_games_that_can_not_be_played_are_refused() -> None:
    with pytest.raises(InputError, match="all different"):
        games.index_game(2, ("a", "a", "b"))
    with pytest.raises(InputError, match="at least two values"):
        games.recall_game("ab", "x")
    with pytest.raises(InputError, match="at most 12"):
        games.averaging_game(13)
