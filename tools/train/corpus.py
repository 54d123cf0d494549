"""The stories as text and as tokens, and the sentencepiece model made from them."""
import io

import numpy as np
import sentencepiece
import torch

PAD, EOS, BOS, UNK = range(4)


def read_documents(path):
    """Stories of a file with one paragraph a line and a blank line between stories."""
    with open(path, encoding="utf-8") as file:
        return [d.strip("\n") for d in file.read().split("\n\n") if d.strip("\n")]


def train_tokenizer(path, vocab_size):
    """A BPE like Gemma's: bytes as fallback, single digits, spaces kept, a newline is a piece of its own."""
    model = io.BytesIO()
    paragraphs = (p for d in read_documents(path) for p in d.split("\n"))
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=paragraphs, model_writer=model, vocab_size=vocab_size, model_type="bpe",
        byte_fallback=True, split_digits=True, add_dummy_prefix=False, remove_extra_whitespaces=False,
        normalization_rule_name="identity", character_coverage=1.0, pad_id=PAD, eos_id=EOS, bos_id=BOS, unk_id=UNK,
        user_defined_symbols=["\n"], max_sentence_length=1 << 20)
    return model.getvalue()


def encode_documents(tokenizer, path):
    """One token array per story: bos, text, eos."""
    encoded = tokenizer.encode(read_documents(path))
    return [np.array([BOS, *ids, EOS], dtype=np.int64) for ids in encoded]


class Windows:
    """Training windows of a token stream: each epoch cuts it at a new phase and visits the windows in a new order.

    The first input of a window is bos, as it is when the finished model runs; targets are the stream's own tokens.
    """

    def __init__(self, stream, ctx, batch, seed):
        self.stream, self.ctx, self.batch, self.seed = torch.as_tensor(stream), ctx, batch, seed
        self.per_epoch = (len(stream) - 1) // ctx - 1
        self.steps_per_epoch = self.per_epoch // batch

    def at(self, step):
        epoch, i = divmod(step, self.steps_per_epoch)
        rng = torch.Generator().manual_seed(self.seed * 1000 + epoch)
        phase = torch.randint(self.ctx, (1,), generator=rng)
        chosen = torch.randperm(self.per_epoch, generator=rng)[i * self.batch:(i + 1) * self.batch]
        rows = self.stream[(chosen * self.ctx + phase)[:, None] + torch.arange(self.ctx + 1)]
        inputs = rows[:, :-1].clone()
        inputs[:, 0] = BOS
        return inputs, rows[:, 1:]
