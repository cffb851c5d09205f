"""Choose one portrait per cell of the grid: candidate pools, a pre-screen, an append-only log, a finalised set.

pools ─▶ (pre-screen) ─▶ select, assess, note ─▶ finalise ─▶ a folder that a study reads
                                ▲ every action is appended to the log; the state is computed from it alone
"""
