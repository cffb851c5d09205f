"""More pipelines of diffusers that edit, tiny and with random weights, each saved as a hub model would be."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import diffusers
import torch
from diffusers import (
    AutoencoderKL,
    AutoencoderKLFlux2,
    DDIMScheduler,
    FlowMatchEulerDiscreteScheduler,
    Flux2Transformer2DModel,
    FluxTransformer2DModel,
    LongCatImageTransformer2DModel,
    OmniGenTransformer2DModel,
    UNet2DConditionModel,
    ZImageTransformer2DModel,
)
from transformers import (
    CLIPTextConfig,
    CLIPTextModel,
    CLIPTextModelWithProjection,
    PreTrainedTokenizerFast,
    Qwen3Config,
    Qwen3ForCausalLM,
    Siglip2ImageProcessorPil,
    Siglip2VisionConfig,
    Siglip2VisionModel,
    T5Config,
    T5EncoderModel,
)

from tests.support import tiny_pipelines
from tests.support.tiny_pipelines import _loud, byte_tokenizer

CHAT = "{% for message in messages %}[{{ message['role'] }}]{{ message['content'] }}{% endfor %}"
BLOCKS = {"norm_num_groups": 2, "layers_per_block": 1}


def words(length: int = 77) -> PreTrainedTokenizerFast:
    """A tokenizer for texts of up to so many bytes."""
    tokenizer = byte_tokenizer("<pad>")
    tokenizer.model_max_length = length
    tokenizer.eos_token = "<pad>"
    tokenizer.chat_template = CHAT
    return tokenizer


def clip(kind: type = CLIPTextModel, width: int = 16) -> Any:
    return kind(
        CLIPTextConfig(
            vocab_size=300,
            hidden_size=width,
            intermediate_size=16,
            num_hidden_layers=2,
            num_attention_heads=2,
            projection_dim=width,
            max_position_embeddings=77,
            bos_token_id=0,
            eos_token_id=2,
        )
    )


def t5() -> T5EncoderModel:
    return T5EncoderModel(T5Config(vocab_size=300, d_model=16, d_kv=8, d_ff=16, num_layers=1, num_heads=2))


def vae(channels: int = 4) -> AutoencoderKL:
    return AutoencoderKL(
        block_out_channels=(8, 8),
        down_block_types=("DownEncoderBlock2D",) * 2,
        up_block_types=("UpDecoderBlock2D",) * 2,
        latent_channels=channels,
        sample_size=32,
        shift_factor=0.0,
        scaling_factor=1.0,
        **BLOCKS,
    )


def unet(channels: int, **more: Any) -> Any:
    return _loud(
        UNet2DConditionModel(
            block_out_channels=(8, 16),
            sample_size=32,
            in_channels=channels,
            out_channels=4,
            down_block_types=("DownBlock2D", "CrossAttnDownBlock2D"),
            up_block_types=("CrossAttnUpBlock2D", "UpBlock2D"),
            attention_head_dim=2,
            **{"cross_attention_dim": 16, **more},
            **BLOCKS,
        ),
        0.2,
    )


def stable(channels: int) -> dict[str, Any]:
    return {
        "vae": vae(),
        "text_encoder": clip(),
        "tokenizer": words(),
        "unet": unet(channels),
        "scheduler": DDIMScheduler(),
        "safety_checker": None,
        "feature_extractor": None,
        "requires_safety_checker": False,
    }


def stable_xl(channels: int) -> dict[str, Any]:
    return {
        "vae": vae(),
        "text_encoder": clip(),
        "text_encoder_2": clip(CLIPTextModelWithProjection),
        "tokenizer": words(),
        "tokenizer_2": words(),
        "unet": unet(
            channels,
            cross_attention_dim=32,
            addition_embed_type="text_time",
            addition_time_embed_dim=8,
            projection_class_embeddings_input_dim=16 + 6 * 8,
        ),
        "scheduler": DDIMScheduler(),
    }


def flux() -> dict[str, Any]:
    return {
        "scheduler": FlowMatchEulerDiscreteScheduler(),
        "vae": vae(),
        "text_encoder": clip(),
        "tokenizer": words(),
        "text_encoder_2": t5(),
        "tokenizer_2": words(512),
        "transformer": _loud(
            FluxTransformer2DModel(
                in_channels=16,
                num_layers=1,
                num_single_layers=1,
                attention_head_dim=16,
                num_attention_heads=2,
                joint_attention_dim=16,
                pooled_projection_dim=16,
                axes_dims_rope=(4, 4, 8),
                guidance_embeds=True,
            )
        ),
    }


def klein() -> dict[str, Any]:
    text = Qwen3Config(
        vocab_size=300,
        hidden_size=16,
        intermediate_size=16,
        num_hidden_layers=28,  # the pipeline reads the layers 9, 18 and 27
        num_attention_heads=2,
        num_key_value_heads=2,
        head_dim=8,
        max_position_embeddings=512,
    )
    return {
        "scheduler": FlowMatchEulerDiscreteScheduler(use_dynamic_shifting=True),
        "vae": AutoencoderKLFlux2(
            down_block_types=("DownEncoderBlock2D",) * 3,
            up_block_types=("UpDecoderBlock2D",) * 3,
            block_out_channels=(8, 8, 8),
            latent_channels=4,
            sample_size=64,
            **BLOCKS,
        ),
        "text_encoder": Qwen3ForCausalLM(text),
        "tokenizer": words(512),
        "transformer": _loud(
            Flux2Transformer2DModel(
                patch_size=1,
                in_channels=16,
                num_layers=1,
                num_single_layers=1,
                attention_head_dim=16,
                num_attention_heads=2,
                joint_attention_dim=48,
                timestep_guidance_channels=16,
                axes_dims_rope=(4, 4, 4, 4),
                guidance_embeds=False,
            )
        ),
        "is_distilled": False,
    }


def omnigen() -> dict[str, Any]:
    return {
        "transformer": _loud(
            OmniGenTransformer2DModel(
                hidden_size=16,
                num_attention_heads=4,
                num_key_value_heads=4,
                intermediate_size=32,
                num_layers=1,
                in_channels=4,
                time_step_dim=4,
                vocab_size=300,
                pad_token_id=0,
                rope_scaling={"long_factor": [1, 2], "short_factor": [1, 2]},
            )
        ),
        "scheduler": FlowMatchEulerDiscreteScheduler(invert_sigmas=True, num_train_timesteps=1),
        "vae": vae(),
        "tokenizer": words(512),
    }


def qwen(folder: Path) -> dict[str, Any]:
    """The parts of the tiny Qwen-Image-Edit-2511, for the classes that share them."""
    parts = diffusers.QwenImageEditPlusPipeline.from_pretrained(tiny_pipelines.save_qwen(folder)).components
    return dict(parts)


def longcat(folder: Path) -> dict[str, Any]:
    """Its text encoder is Qwen's."""
    parts = qwen(folder)
    return {
        "scheduler": FlowMatchEulerDiscreteScheduler(use_dynamic_shifting=True),
        "vae": vae(16),
        "text_encoder": parts["text_encoder"],
        "tokenizer": parts["tokenizer"],
        "text_processor": parts["processor"],
        "transformer": _loud(
            LongCatImageTransformer2DModel(
                in_channels=64,
                num_layers=1,
                num_single_layers=1,
                attention_head_dim=16,
                num_attention_heads=2,
                joint_attention_dim=16,
                pooled_projection_dim=16,
                axes_dims_rope=[4, 4, 8],
            )
        ),
    }


def z_image_omni() -> dict[str, Any]:
    seeing = Siglip2VisionConfig(
        hidden_size=16, intermediate_size=16, num_hidden_layers=1, num_attention_heads=2, num_patches=16, patch_size=16
    )
    return {
        "scheduler": FlowMatchEulerDiscreteScheduler(use_dynamic_shifting=True),
        "vae": vae(),
        "text_encoder": klein()["text_encoder"],
        "tokenizer": words(512),
        "transformer": _loud(
            ZImageTransformer2DModel(
                in_channels=4,
                dim=32,
                n_layers=1,
                n_refiner_layers=1,
                n_heads=2,
                n_kv_heads=2,
                cap_feat_dim=16,
                siglip_feat_dim=16,
                axes_dims=[4, 6, 6],
                axes_lens=[1024, 64, 64],
            )
        ),
        "siglip": Siglip2VisionModel(seeing),
        "siglip_processor": Siglip2ImageProcessorPil(patch_size=16, max_num_patches=16),
    }


def without(parts: dict[str, Any], *names: str) -> dict[str, Any]:
    return {name: part for name, part in parts.items() if name not in names}


MADE: dict[str, Callable[[Path], dict[str, Any]]] = {
    "Flux2KleinPipeline": lambda _: klein(),
    "Flux2KleinKVPipeline": lambda _: klein() | {"is_distilled": True},
    "FluxKontextPipeline": lambda _: flux(),
    "FluxImg2ImgPipeline": lambda _: flux(),
    "LongCatImageEditPipeline": longcat,
    "OmniGenPipeline": lambda _: omnigen(),
    "QwenImageEditPipeline": qwen,
    "QwenImageImg2ImgPipeline": lambda folder: without(qwen(folder), "processor"),
    "StableDiffusionImg2ImgPipeline": lambda _: stable(4),
    "StableDiffusionInstructPix2PixPipeline": lambda _: stable(8),
    "StableDiffusionXLImg2ImgPipeline": lambda _: stable_xl(4),
    "StableDiffusionXLInstructPix2PixPipeline": lambda _: stable_xl(8),
    "ZImageOmniPipeline": lambda _: z_image_omni(),
}


def save(name: str, folder: Path) -> Path:
    """A pipeline of this class."""
    if name == "Flux2Pipeline":
        return tiny_pipelines.save_flux2(folder)
    if name == "QwenImageEditPlusPipeline":
        return tiny_pipelines.save_qwen(folder)
    torch.manual_seed(0)
    parts = MADE[name](folder.with_name(f"{folder.name}-parts"))
    getattr(diffusers, name)(**parts).save_pretrained(folder)
    return folder


NAMES = ("Flux2Pipeline", "QwenImageEditPlusPipeline", *MADE)
