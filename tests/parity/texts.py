"""Texts that other embedding servers got wrong, beside ordinary ones, and texts of an exact number of tokens.

The comments name the public report that a text comes from.
"""

from __future__ import annotations

import itertools

from tests.parity.sides import Ours

ORDINARY = (
    "query: dummy",
    "query: 食べられる薔薇を育てている農家は日本に数件しかありません。",
    "query: 日本の薔薇農家",
    "The quick brown fox jumps over the lazy dog.",
    "What is Deep Learning?",  # huggingface/text-embeddings-inference#51
    "Who is Walt Disney?",
    "hello",
    "def f(x):\n    return x ** 2  # power\n",
)
REPORTED = (
    ("Hello world, " * 3000)[:1200],  # huggingface/text-embeddings-inference#146: cut at 256 tokens
    ("Hello world, " * 3000)[:1100],  # exactly 256 tokens of MiniLM
    "hello" * 300,  # qdrant/fastembed#689
    "hello " * 300,
    "hi",
    # hang-in/seCall#5, ollama/ollama#12921: not finite in float16
    "Let me read the InputArea file in sections and look for more bang command information:",
    "Now let me check how messages are actually loaded and when they're displayed in the ChatArea component:",
    "I'll systematically research the rawq integration across both codebases. Let me start by exploring the structure "
    "and key files.",
    "importance",
    "importance of the third strand",
    "5.2",  # michaelfeil/infinity#328
    # qdrant/fastembed#368
    "Я помню чудное мгновенье:\nПередо мной явилась ты,\nКак мимолетное виденье,\nКак гений чистой красоты.",
    "你好",  # huggingface/text-embeddings-inference#279
    "北京天安门",
    "test test",  # huggingface/sentence-transformers#2312
)
ODD = (
    "",
    " ",
    "\n",
    "\t \r\n \u00a0\u3000\u200b",
    "   many \t\t  blanks \n\n\n in a   row   ",
    "hello\u0000world",  # BaseIntelligence/bounty-challenge#218
    "\u0000",
    "\u0001\u0002\u007f\u0085",
    "\ufffd",
    "\ufeffa byte order mark",
    "caf\u00e9",
    "cafe\u0301",
    "Größe Ångström naïve ﬁne ½ ² Ⅷ ｆｕｌｌ",
    "😀",
    "💣",
    "👨‍👩‍👧‍👦 and 🏳️‍🌈",
    "العربية हिन्दी ไทย 한국어 ᚠᛇᚻ Ελλάδα",
    "[CLS] [SEP] [PAD] [MASK] [UNK]",
    "<s> </s> <pad> <mask> <unk>",
    "text[SEP]glued<pad>together<|endoftext|>",
    "[SEP]",
    "<pad>",
    "</s>",
    "a[PAD]b<pad>c",
    "!",
    "...",
    "UPPER lower Title",
    "0123456789" * 9,
    "https://user:pass@host.example/path?q=1&r=%20#frag",
    '{"instances": ["a"]}\\n\\u0041',
    "a" * 200,
)
# michaelfeil/infinity#561: no white space to cut at, and none to be seen before the limit is long reached.
LONG = ("a" * 130_000, "日" * 130_000, "word " * 26_000, " " * 130_000, "a" + " " * 130_000 + "b")

ALL = ORDINARY + REPORTED + ODD

_WORDS = ("a", "the", "of", "in", "is", "on", "to")


def of_length(ours: Ours, count: int) -> str:
    """Return a text of plain words that has exactly `count` tokens before truncation, special tokens included.

    Raises:
        ValueError: When the model's tokenizer has no plain words, or adds nothing to a text.
    """
    tokenizer = ours.embedder.tokenizer
    empty, one = (item.full_count for item in tokenizer.encode(["", "a"]))
    words = [word for word in _WORDS if tokenizer.encode([f"a {word}"])[0].full_count == one + 1]
    if one != empty + 1 or len(words) < 2:
        raise ValueError(f"{ours.settings.model.id}: the tokenizer cuts plain words apart")
    # Neither periodic nor symmetric, so that a lost or moved token shows.
    order = (words[place * place % 7 % len(words)] for place in itertools.count(3))
    text = " ".join(["a", *itertools.islice(order, count - one)]) if count >= one else ""
    found = tokenizer.encode([text])[0].full_count
    if found != count:
        raise ValueError(f"{ours.settings.model.id}: wanted a text of {count} tokens, made one of {found}")
    return text


def around_limit(ours: Ours) -> list[str]:
    """Texts of no token, one token, and every length from two below the limit to two above."""
    limit = ours.settings.model.max_length
    return ["", "a", *(of_length(ours, count) for count in range(limit - 2, limit + 3))]
