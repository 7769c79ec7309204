"""Texts that an exported or quantized encoder is held against: of many scripts, kinds and lengths."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

from marvec.settings import ClassificationSettings, Settings
from marvec.tokens import TextTokenizer, Tokens

TEXTS = (
    "hello",
    "query: how do I grow roses that one can eat?",
    "passage: Only a few farms grow edible roses; they sell petals to confectioners and jam makers.",
    "The committee adjourned without a vote, and nobody was sure whether the amendment still stood.",
    "What is the capital of Mongolia, and how cold does it get there in January?",
    "def median(values):\n    ordered = sorted(values)\n    return ordered[len(ordered) // 2]\n",
    "SELECT name, count(*) FROM visits WHERE day >= '2026-01-01' GROUP BY name ORDER BY 2 DESC;",
    "Invoice 2026-0417: 3 x cable (2 m) at 4.90 EUR, 1 x adapter at 17.50 EUR, total 32.20 EUR.",
    "Terrible. It broke after two days and the shop would not take it back!!!",
    "Die Größe der Straße überraschte alle, obwohl der Plan längst beschlossen war.",
    "Le train de nuit traverse la plaine pendant que les voyageurs dorment.",
    "La biblioteca cierra a las ocho, pero los sábados solo abre por la mañana.",
    "Старый мост через реку закрыт на ремонт до конца осени.",
    "Ο ήλιος έδυε πίσω από τα νησιά όταν φτάσαμε στο λιμάνι.",
    "القطار المتجه إلى الشمال سيتأخر نصف ساعة بسبب الأمطار.",
    "बारिश के बाद बाज़ार में ताज़ी सब्ज़ियाँ मिलने लगीं।",
    "食べられる薔薇を育てている農家は日本に数件しかありません。",
    "天气转凉以后，山上的枫叶慢慢变红了。",
    "비가 그치자 아이들이 다시 운동장으로 뛰어나갔다.",
    "ร้านกาแฟหน้าสถานีเปิดตั้งแต่หกโมงเช้าทุกวัน",
    "Çay bahçesinde akşam olunca ışıklar birer birer yandı.",
    "🚲 + 🌧️ = 😀? a² + b² = c², ∑ of all x ∈ ℝ",
)
_LONGEST_CLASS_TOKENS = 4096  # longer inputs would take minutes


def for_task(tokenizer: TextTokenizer, settings: Settings) -> list[Tokens]:
    """Inputs of every length, and pairs of texts where those are served."""
    pairs = paired(tokenizer) if isinstance(settings, ClassificationSettings) and settings.model.pairs else []
    return [*of_every_length(tokenizer), *pairs]


def of_every_length(tokenizer: TextTokenizer) -> list[Tokens]:
    """Tokenize the texts, and cut longer ones so that there is an input of every length class.

    Returns:
        The texts as they are, then inputs of 4, 8, 16, … tokens up to the tokenizer's greatest length.
    """
    longest = min(tokenizer.max_length, _LONGEST_CLASS_TOKENS)
    return [item for item in tokenizer.encode(TEXTS) if item.ids] + [
        of_length(tokenizer, length) for length in _classes(longest)
    ]


def of_length(tokenizer: TextTokenizer, length: int) -> Tokens:
    """An input of so many tokens."""
    text = "\n".join(TEXTS * (1 + length // len(TEXTS)))
    return tokenizer.limited_to(length).encode([text])[0]


def _classes(longest: int) -> Iterator[int]:
    length = 4
    while length < longest:
        yield length
        length *= 2
    yield longest


def paired(tokenizer: TextTokenizer) -> list[Tokens]:
    """Pairs that are cut, in the second text, in the first or in both, and pairs of the texts as they are."""
    long = "\n".join(TEXTS * (1 + tokenizer.max_length // len(TEXTS)))
    pairs = [(TEXTS[0], long), (long, TEXTS[0]), (long, long), *itertools.pairwise(TEXTS)]
    return tokenizer.encode_pairs(pairs)
