"""The real FLUX.2 and Qwen-Image-Edit pipeline classes, tiny and with random weights, saved as a hub model would be.

Import this module before loading the Qwen folder: its processor is defined here, since the stock one wants
torchvision for videos, and diffusers finds a component by the module that defines it.
"""

from pathlib import Path
from typing import Any

import torch
from diffusers import (
    AutoencoderKLFlux2,
    AutoencoderKLQwenImage,
    FlowMatchEulerDiscreteScheduler,
    Flux2Pipeline,
    Flux2Transformer2DModel,
    QwenImageEditPlusPipeline,
    QwenImageTransformer2DModel,
)
from PIL.Image import Image
from tokenizers import Tokenizer, decoders, models, pre_tokenizers
from transformers import (
    BatchFeature,
    Mistral3Config,
    Mistral3ForConditionalGeneration,
    PreTrainedTokenizerFast,
    ProcessorMixin,
    Qwen2_5_VLConfig,
    Qwen2_5_VLForConditionalGeneration,
)

PATCH = 14
"""Pixels along a patch of the tiny Qwen vision tower; two by two patches make a token."""
QWEN_SPECIAL = ("<|im_start|>", "<|im_end|>", "<|vision_start|>", "<|vision_end|>", "<|image_pad|>", "<|video_pad|>")
CHAT = (
    "{% for message in messages %}[{{ message['role'] }}]"
    "{% for part in message['content'] %}{{ part['text'] }}{% endfor %}{% endfor %}"
)


def save_flux2(folder: Path) -> Path:
    """A Flux2Pipeline of some 100,000 random parameters."""
    torch.manual_seed(0)
    tokenizer = byte_tokenizer("[PAD]", "[IMG]")
    tokenizer.chat_template = CHAT
    text = {
        "model_type": "mistral",
        "vocab_size": len(tokenizer),
        "hidden_size": 16,
        "intermediate_size": 16,
        "num_hidden_layers": 30,  # the pipeline reads the layers 10, 20 and 30
        "num_attention_heads": 2,
        "num_key_value_heads": 2,
        "head_dim": 8,
        "max_position_embeddings": 512,
    }
    vision = {
        "model_type": "pixtral",
        "hidden_size": 16,
        "intermediate_size": 16,
        "num_hidden_layers": 1,
        "num_attention_heads": 2,
        "image_size": 32,
        "patch_size": 8,
    }
    Flux2Pipeline(
        scheduler=FlowMatchEulerDiscreteScheduler(use_dynamic_shifting=True),
        vae=AutoencoderKLFlux2(
            down_block_types=("DownEncoderBlock2D",) * 3,
            up_block_types=("UpDecoderBlock2D",) * 3,
            block_out_channels=(8, 8, 8),
            layers_per_block=1,
            latent_channels=4,
            norm_num_groups=2,
            sample_size=64,
        ),
        text_encoder=Mistral3ForConditionalGeneration(Mistral3Config(text_config=text, vision_config=vision)),
        tokenizer=tokenizer,
        transformer=_loud(
            Flux2Transformer2DModel(
                patch_size=1,
                in_channels=16,
                num_layers=1,
                num_single_layers=1,
                attention_head_dim=16,
                num_attention_heads=2,
                joint_attention_dim=3 * 16,
                timestep_guidance_channels=16,
                axes_dims_rope=(4, 4, 4, 4),
            )
        ),
    ).save_pretrained(folder)
    return folder


def save_qwen(folder: Path) -> Path:
    """A QwenImageEditPlusPipeline of some 900,000 random parameters."""
    torch.manual_seed(0)
    tokenizer = byte_tokenizer("<|endoftext|>", *QWEN_SPECIAL)
    ids = {name: tokenizer.convert_tokens_to_ids(name) for name in QWEN_SPECIAL}
    config = Qwen2_5_VLConfig(
        text_config={
            "vocab_size": len(tokenizer),
            "hidden_size": 16,
            "intermediate_size": 16,
            "num_hidden_layers": 2,
            "num_attention_heads": 2,
            "num_key_value_heads": 2,
            "bos_token_id": tokenizer.pad_token_id,
            "eos_token_id": tokenizer.pad_token_id,
            "rope_parameters": {"rope_type": "default", "rope_theta": 10000.0, "mrope_section": [1, 1, 2]},
        },
        vision_config={
            "depth": 2,
            "hidden_size": 16,
            "intermediate_size": 16,
            "num_heads": 2,
            "out_hidden_size": 16,
            "patch_size": PATCH,
            "fullatt_block_indexes": [1],
        },
        image_token_id=ids["<|image_pad|>"],
        video_token_id=ids["<|video_pad|>"],
        vision_start_token_id=ids["<|vision_start|>"],
        vision_end_token_id=ids["<|vision_end|>"],
    )
    QwenImageEditPlusPipeline(
        scheduler=FlowMatchEulerDiscreteScheduler(use_dynamic_shifting=True),
        vae=AutoencoderKLQwenImage(
            base_dim=8,
            z_dim=4,
            dim_mult=[1, 1, 1, 1],
            num_res_blocks=1,
            temperal_downsample=[False, True, True],
            latents_mean=[0.0] * 4,
            latents_std=[1.0] * 4,
        ),
        text_encoder=Qwen2_5_VLForConditionalGeneration(config),
        tokenizer=tokenizer,
        processor=PictureProcessor(tokenizer),
        transformer=_loud(
            QwenImageTransformer2DModel(
                patch_size=2,
                in_channels=16,
                out_channels=4,
                num_layers=2,
                attention_head_dim=16,
                num_attention_heads=2,
                joint_attention_dim=16,
                axes_dims_rope=(4, 6, 6),
            )
        ),
    ).save_pretrained(folder)
    return folder


def _loud(model: torch.nn.Module, spread: float = 0.3) -> Any:
    """Larger random weights, so that prompt and picture move the output by more than a grey level."""
    with torch.no_grad():
        for weights in model.parameters():
            if weights.ndim > 1:
                weights.normal_(0, spread)
    return model


def byte_tokenizer(pad: str, *special: str) -> PreTrainedTokenizerFast:
    """A byte-pair tokenizer that never learned a pair: 256 bytes and the special tokens."""
    alphabet = {letter: number for number, letter in enumerate(sorted(pre_tokenizers.ByteLevel.alphabet()))}
    core = Tokenizer(models.BPE(vocab=alphabet, merges=[]))
    core.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    core.decoder = decoders.ByteLevel()
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=core, pad_token=pad)
    tokenizer.add_special_tokens({"additional_special_tokens": list(special)})
    return tokenizer


class PictureProcessor(ProcessorMixin):
    """What Qwen2VLProcessor does with text and pictures, without its video part."""

    attributes = ("tokenizer",)
    tokenizer_class = "AutoTokenizer"

    def __init__(self, tokenizer: PreTrainedTokenizerFast) -> None:
        super().__init__(tokenizer)

    @property
    def image_processor(self) -> Any:
        """What reads pictures alone, for pipelines that ask for it."""
        from transformers import Qwen2VLImageProcessorPil

        return Qwen2VLImageProcessorPil(min_pixels=28 * 28, max_pixels=56 * 56)

    def __call__(self, text: list[str], images: list[Image] | Image, **options: Any) -> BatchFeature:
        images = images if isinstance(images, list) else [images]
        patches, grids = zip(*map(_patches, images), strict=True)
        tokens = [len(rows) // 4 for rows in patches]
        filled = []
        for line in text:
            for count in tokens:
                line = line.replace("<|image_pad|>", "<|hole|>" * count, 1)
            filled.append(line.replace("<|hole|>", "<|image_pad|>"))
        words = self.tokenizer(filled, **options)
        pictures = {"pixel_values": torch.cat(patches), "image_grid_thw": torch.tensor(grids)}
        return BatchFeature({**words, **pictures})


def _patches(image: Image) -> tuple[torch.Tensor, tuple[int, int, int]]:
    """A picture as rows of patches, two by two together, each pixel twice in time: the vision tower's input."""
    down, across = (max(1, round(side / PATCH / 2)) for side in (image.height, image.width))
    small = image.convert("RGB").resize((across * 2 * PATCH, down * 2 * PATCH))
    pixels = torch.frombuffer(bytearray(small.tobytes()), dtype=torch.uint8).float() / 127.5 - 1
    grid = pixels.view(down, 2, PATCH, across, 2, PATCH, 3).permute(0, 3, 1, 4, 6, 2, 5)  # y x dy dx rgb v u
    rows = grid.reshape(-1, 3, 1, PATCH, PATCH).repeat(1, 1, 2, 1, 1)
    return rows.reshape(rows.shape[0], -1), (1, down * 2, across * 2)
