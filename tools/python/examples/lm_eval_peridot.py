"""Peridot's models in EleutherAI's lm-evaluation-harness, as the model "peridot":

    pip install lm_eval ./tools/python
    python tools/python/examples/lm_eval_peridot.py --model peridot --model_args pretrained=gemma-2-2b.gguf \
        --tasks lambada_openai,hellaswag --limit 100

Log-likelihoods come from Sequence.score. Choices of one question share the cache of what they begin with.
"""
from lm_eval.__main__ import cli_evaluate
from lm_eval.api.model import TemplateLM
from lm_eval.api.registry import register_model
from lm_eval.utils import get_rolling_token_windows, make_disjoint_window

import peridot


@register_model("peridot")
class PeridotLM(TemplateLM):
    def __init__(self, pretrained, gpu=None, ctx=0, **_):   # lm_eval's own `device` is torch's
        super().__init__()
        self.model = peridot.Model(pretrained, device=gpu)
        self.sequence = peridot.Session(self.model, ctx=int(ctx)).sequence()
        self.max_length = self.sequence.session.ctx - 1   # tokens before the last one

    @property
    def eot_token_id(self):
        return next(i for i in range(self.model.info.vocab_size) if self.model.is_stop(i))

    @property
    def prefix_token_id(self):
        return (self.model.encode("", bos=True) or [self.eot_token_id])[0]

    def tok_encode(self, string, add_special_tokens=None, **_):
        return self.model.encode(string, bos=add_special_tokens is not False)

    def _keep(self, ids, most):
        """Keeps of the sequence what it has in common with the ids, at most so many, and gives the number."""
        pairs = list(zip(self.sequence.tokens[:most], ids))
        return self.sequence.truncate(next((i for i, (a, b) in enumerate(pairs) if a != b), len(pairs)))

    def _loglikelihood_tokens(self, requests, **_):
        results = []
        for _, context, continuation in requests:
            ids = (context + continuation)[-self.max_length - 1:]
            first = len(ids) - len(continuation)
            scores, likeliest = self.sequence.score(ids[self._keep(ids, first - 1):], first=first)
            results.append((float(scores.sum()), bool(likeliest.all())))
        return results

    def loglikelihood_rolling(self, requests, **_):
        results = []
        for (text,) in (request.args for request in requests):
            windows = get_rolling_token_windows(self.tok_encode(text, add_special_tokens=False), self.prefix_token_id,
                                                self.max_length, context_len=1)
            pairs = [(None, *make_disjoint_window(window)) for window in windows]
            results.append(sum(score for score, _ in self._loglikelihood_tokens(pairs)))
        return results

    def generate_until(self, requests, **_):
        results = []
        for context, options in (request.args for request in requests):
            until, n = options.get("until", []), options.get("max_gen_toks", 256)
            sampling = peridot.Sampling(temperature=options.get("temperature", 0) if options.get("do_sample") else 0,
                                        top_k=0, top_p=1, min_p=0, repeat_penalty=1, xtc_probability=0,
                                        stop=[until] if isinstance(until, str) else until)
            ids = self.tok_encode(context)[-max(self.max_length - n, 1):]
            results.append(self.sequence.generate(ids[self._keep(ids, len(ids) - 1):], n, sampling).read())
        return results


if __name__ == "__main__":
    cli_evaluate()
