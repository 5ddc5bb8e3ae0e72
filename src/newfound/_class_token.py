"""The last block of a vision transformer where only the class token is read: one query instead of one a token.

Keys and values are needed of all tokens; the query, the projection, the MLP and the norms behind them only of the one
that the feature is taken from. The result is the model's own, in a sixth of the block's arithmetic.
"""

from __future__ import annotations

from functools import partial
from typing import Any

from torch import Tensor, nn
from torch.nn import functional as F

from newfound._chain import Call, Step, step


def steps(model: Any, chain: list[Call]) -> list[Step]:
    """What a chain of modules does, one step each; the last block only for the class token, where that is all."""
    plain = [step(module, keywords) for module, keywords in chain]
    modules = [module for module, _ in chain]
    if not _reads_class_token(model) or model.blocks[-1] not in modules:
        return plain
    block = model.blocks[-1]
    last = modules.index(block)
    alone = all(isinstance(module, nn.LayerNorm | nn.Identity) for module in modules[last + 1 :])
    if not alone or chain[last][1] or not _is_plain(block):
        return plain
    return [*plain[:last], partial(_last_block, block), *plain[last + 1 :]]


def _last_block(block: Any, tokens: Tensor) -> Tensor:
    """timm's `Block` for the first token: [n, tokens, width] to [n, 1, width]."""
    first = tokens[:, :1]
    first = first + block.drop_path1(block.ls1(_attend(block.attn, block.norm1(tokens))))
    return first + block.drop_path2(block.ls2(block.mlp(block.norm2(first))))


def _attend(attention: Any, tokens: Tensor) -> Tensor:
    """timm's `Attention` with the first token as the only query."""
    weight, bias, width = attention.qkv.weight, attention.qkv.bias, attention.num_heads * attention.head_dim
    first = tokens[:, :1]

    def heads(x: Tensor, part: slice) -> Tensor:
        projected = F.linear(x, weight[part], None if bias is None else bias[part])
        return projected.unflatten(-1, (-1, attention.num_heads, attention.head_dim)).movedim(2, 0).transpose(2, 3)

    (query,) = heads(first, slice(0, width))
    key, value = heads(tokens, slice(width, None))
    mixed = F.scaled_dot_product_attention(attention.q_norm(query), attention.k_norm(key), value)
    mixed = attention.norm(mixed.transpose(1, 2).flatten(2))
    return attention.proj(mixed)


def _reads_class_token(model: Any) -> bool:
    from timm.models.vision_transformer import VisionTransformer

    return (
        type(model) is VisionTransformer
        and model.global_pool == "token"
        and model.attn_pool is None
        and model.num_prefix_tokens > 0
    )


def _is_plain(block: Any) -> bool:
    """Whether a block is one that `_last_block` follows: no gate, and no dropout, which draws by shape."""
    from timm.layers.attention import Attention
    from timm.models.vision_transformer import Block

    return (
        type(block) is Block
        and type(block.attn) is Attention
        and getattr(block.attn, "gate", None) is None
        and all(part.p == 0 for part in block.modules() if isinstance(part, nn.Dropout))
    )


__all__ = ["steps"]
