"""Where the paper contradicts itself: a fold of every report under the published rules, and a section of the docs."""

CONTRADICTIONS: tuple[str, ...] = (
    "Table 20's columns of Step1X and Qwen cannot be true beside Table 19 and Figure 4; its FLUX column can.",
    "Table 26's baseline mean of FLUX (2.30) is not that of Table 4 (1.62).",
    "The text says that FLUX has the highest edit success; by Table 4 and Table 19 Qwen has.",
    "Tables 21 and 26 need more pairs of each race than FLUX had.",
    "The text speaks of race gaps of 0.03 to 0.16 where its Table 6 has 0.03 to 0.10.",
    "An evaluation plan of the authors counts 6,300 images; the paper's experiments make 5,040 + 500 + 100.",
    "Table 4's caption calls scores from 2 on a change; the printed race-change rates count scores from 3 on.",
)
"""Each in one sentence, so that nobody takes them for errors of the analysis."""
