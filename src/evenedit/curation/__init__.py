"""From many candidates to one portrait per cell: pools, pre-screen, an append-only log, a finalised set.

pools ─▶ (pre-screen) ─▶ select, assess, note ─▶ finalise ─▶ a folder that a study reads
                                ▲ log: the state is its fold, nothing else
"""
