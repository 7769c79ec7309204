"""Small real tokenizers of the three kinds that encoders use, made in memory: WordPiece, Unigram and byte-level BPE.

Each knows the letters of every text, some words and pieces, and its family's special tokens at their usual ids, so
that a text has a few tokens, unknown characters included, and nothing is trained or fetched.
"""

from __future__ import annotations

from dataclasses import dataclass

from tokenizers import AddedToken, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors

LETTERS = "abcdefghijklmnopqrstuvwxyz0123456789"
MARKS = ".,:;!?'\"()-_/"
WORDS = ("query", "passage", "the", "a", "of", "in", "is", "rose", "farm", "small", "model", "text", "japan", "grow")
KANA_AND_KANJI = "日本の薔薇農家食べられる"


@dataclass(frozen=True)
class Special:
    """The special tokens of a family, in the words of a tokenizer_config.json; a mask token always exists."""

    cls: str
    sep: str
    pad: str
    unk: str
    mask: str

    def settings(self) -> dict[str, str]:
        """Return them as a tokenizer_config.json names them."""
        return {f"{role}_token": token for role, token in vars(self).items()} | {
            "bos_token": self.cls,
            "eos_token": self.sep,
        }


BERT = Special(cls="[CLS]", sep="[SEP]", pad="[PAD]", unk="[UNK]", mask="[MASK]")
ROBERTA = Special(cls="<s>", sep="</s>", pad="<pad>", unk="<unk>", mask="<mask>")
MPNET = Special(cls="<s>", sep="</s>", pad="<pad>", unk="[UNK]", mask="<mask>")


def wordpiece(special: Special, *, lowercase: bool = True) -> Tokenizer:
    """Return a WordPiece tokenizer as of bert, distilbert (special ids 0, 2, 3 for pad, cls, sep) and mpnet."""
    characters = [*LETTERS, *MARKS, *dict.fromkeys(KANA_AND_KANJI)]
    pieces = [special.pad, special.unk, special.cls, special.sep, special.mask, *characters, *WORDS]
    if special is MPNET:
        pieces[:5] = [special.cls, special.pad, special.sep, special.unk, special.mask]
    pieces += [f"##{character}" for character in characters] + ["##s", "##ing", "##er"]
    vocabulary = {piece: index for index, piece in enumerate(dict.fromkeys(pieces))}
    tokenizer = Tokenizer(models.WordPiece(vocabulary, unk_token=special.unk))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=lowercase)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.decoder = decoders.WordPiece()
    if special is MPNET:
        return _finish(tokenizer, special, pair="{cls} $A {sep} {sep} $B {sep}")
    return _finish(tokenizer, special, pair="{cls} $A {sep} $B:1 {sep}:1")


def unigram(special: Special = ROBERTA) -> Tokenizer:
    """Return a Unigram tokenizer as of xlm-roberta: special ids 0, 1, 2, 3 for cls, pad, sep, unk; mask last."""
    scored = {special.cls: 0.0, special.pad: 0.0, special.sep: 0.0, special.unk: 0.0, "▁": -3.0}
    scored |= {f"▁{word}": -4.0 - len(word) / 10 for word in WORDS}
    scored |= {character: -6.0 - place / 50 for place, character in enumerate([*LETTERS, *MARKS, *KANA_AND_KANJI])}
    scored |= {"ing": -5.0, "日本": -5.0, "薔薇": -5.5, special.mask: 0.0}
    tokenizer = Tokenizer(models.Unigram(list(scored.items()), unk_id=3, byte_fallback=False))
    tokenizer.normalizer = normalizers.NFKC()
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    tokenizer.decoder = decoders.Metaspace()
    return _finish(tokenizer, special, pair="{cls} $A {sep} {sep} $B {sep}")


def byte_bpe(special: Special) -> Tokenizer:
    """Return a byte-level BPE tokenizer as of roberta (special ids 0 to 3) and modernbert (its own, at the end)."""
    first = [special.cls, special.pad, special.sep, special.unk] if special is ROBERTA else []
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    merges = [("t", "h"), ("th", "e"), ("Ġ", "the"), ("i", "n"), ("in", "g"), ("e", "r"), ("Ġ", "a"), ("o", "s")]
    pieces = [*first, *alphabet, *("".join(pair) for pair in merges)]
    last = [special.mask] if first else [special.unk, special.cls, special.sep, special.pad, special.mask]
    vocabulary = {piece: index for index, piece in enumerate([*pieces, *last])}
    tokenizer = Tokenizer(models.BPE(vocabulary, merges))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    between = "{sep} {sep}" if special is ROBERTA else "{sep}"
    return _finish(tokenizer, special, pair=f"{{cls}} $A {between} $B {{sep}}")


def _finish(tokenizer: Tokenizer, special: Special, pair: str) -> Tokenizer:
    """Add the special tokens and the template that puts them around a text."""
    tokenizer.add_special_tokens(
        [AddedToken(token, normalized=False, special=True) for token in vars(special).values()]
    )
    ids = {token: tokenizer.token_to_id(token) for token in (special.cls, special.sep)}
    tokenizer.post_processor = processors.TemplateProcessing(
        single=f"{special.cls} $A {special.sep}",
        pair=pair.format(cls=special.cls, sep=special.sep),
        special_tokens=list(ids.items()),
    )
    return tokenizer
