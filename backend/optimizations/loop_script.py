"""The own decode loop as a user would write it: what `loop=own` puts into an exported script."""

LOOP = '''class Place:
    """Where the next token goes in layers of one size; kernels look here too."""

    def __init__(self, rows, size):
        self.decoding = False
        self.slot = torch.zeros(1, dtype=int, device=DEVICE)
        self.filled = torch.zeros(rows, size, dtype=torch.bool, device=DEVICE)
        self.turns = torch.zeros(256, dtype=torch.int32, device=DEVICE)


class OwnLoop(StaticCache):
    """A static cache with its own decode step, on tensors that never move.

    A sliding window is a ring: the newest token takes the place of the oldest.
    """

    def __init__(self, model, length):
        super().__init__(config=model.config, max_cache_len=length)
        self.model, self.length = model, length
        self.places, self.advance = {}, None
        for layer in self.layers:
            layer.update = functools.partial(self._update, layer, layer.update)

    def _update(self, layer, fill, keys, values, *more, **kwargs):
        if not self.places or not layer.place.decoding:
            return fill(keys, values, *more, **kwargs)
        layer.keys.index_copy_(2, layer.place.slot, keys)
        layer.values.index_copy_(2, layer.place.slot, values)
        return layer.keys, layer.values

    def _prefill(self, ids, mask):
        """Read the prompt; every tensor of the step is made or put back here."""
        self.reset()
        for place in self.places.values():
            place.decoding = False
        positions = (mask.cumsum(-1) - 1).clamp(min=0)
        inputs = {"input_ids": ids, "attention_mask": mask, "position_ids": positions}
        outputs = self.model(**inputs, past_key_values=self, logits_to_keep=1)
        if not self.places:
            self.token, self.positions = ids[:, :1].clone(), positions[:, :1].clone()
            for layer in self.layers:
                size = layer.max_cache_len
                if size not in self.places:
                    self.places[size] = Place(len(ids), size)
                layer.place = self.places[size]
        for size, place in self.places.items():
            place.decoding = True
            place.slot.fill_(mask.shape[1] if mask.shape[1] < size else 0)
            last = mask[:, -size:].bool()
            place.filled.zero_()[:, : last.shape[1]] = last
        self.positions.copy_(positions[:, -1:] + 1)
        self._choose(outputs.logits)

    def _choose(self, logits):
        scores = logits[:, -1].float()
        for warper in self.warpers:
            scores = warper(None, scores)
        if self.warpers:  # the largest of these is a draw from the softmax
            scores = scores.softmax(-1) / torch.empty_like(scores).exponential_()
        self.token.copy_(scores.argmax(-1, keepdim=True))

    def _masks(self):
        kinds, make = {}, self.model.config._attn_implementation == "eager"
        for layer in self.layers:
            mask = layer.place.filled[:, None, None]
            if make:  # eager attention adds its mask
                lowest = torch.finfo(self.model.dtype).min
                mask = torch.where(mask, 0.0, lowest).to(self.model.dtype)
            kinds["sliding_attention" if layer.is_sliding else "full_attention"] = mask
        return kinds if hasattr(self.model.config, "layer_types") else mask

    def _step(self):
        for place in self.places.values():
            place.filled.index_fill_(1, place.slot, True)
        inputs = {"attention_mask": self._masks(), "position_ids": self.positions}
        logits = self.model(self.token, **inputs, past_key_values=self).logits
        for size, place in self.places.items():
            place.slot.add_(1).remainder_(size)
        self.positions.add_(1)
        self._choose(logits)
CAPTURE
    @torch.no_grad()
    def decode(self, inputs, new_tokens, clock, warpers=()):
        """Ids of prompt and new tokens, up to the end of the last row's text."""
        ids, mask = inputs["input_ids"], inputs["attention_mask"]
        self.warpers = warpers
        settings = self.model.generation_config
        ends = settings.eos_token_id  # 0 is one too
        ends = torch.tensor([] if ends is None else ends, device=DEVICE).view(-1)
        done = torch.zeros(len(ids), dtype=torch.bool, device=DEVICE)
        clock.put(ids)
        with self.model._optimize_model_for_decode():
MAKE            self._prefill(ids, mask)
            for made in range(new_tokens):
                if made:
                    self.advance()
                new = torch.where(done, settings.pad_token_id or 0, self.token[:, 0])
                ids = torch.cat([ids, new[:, None]], 1)
                clock.put(new)
                done |= torch.isin(new, ends)
                if len(ends) and done.all():
                    break
        return ids'''

CAPTURE = '''
    def _captured(self, step):
        """The whole step as one CUDA graph."""
        aside = torch.cuda.Stream()
        aside.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(aside):
            for _ in range(3):  # libraries set themselves up, compilers compile
                step()
                for place in self.places.values():
                    place.slot.zero_()
        torch.cuda.current_stream().wait_stream(aside)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            step()
        return graph.replay
'''
