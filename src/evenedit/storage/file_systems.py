"""Network file systems, on which SQLite's write-ahead log is not safe."""

from __future__ import annotations

from pathlib import Path

MOUNTS = Path("/proc/mounts")
PLAIN = (
    "nfs",
    "nfs4",
    "cifs",
    "smb3",
    "smbfs",
    "lustre",
    "gpfs",
    "beegfs",
    "ceph",
    "afs",
    "9p",
    "ncpfs",
    "orangefs",
    "pvfs2",
    "panfs",
)
FUSE = ("sshfs", "glusterfs", "ceph", "s3fs", "gcsfuse", "juicefs", "lustre", "beegfs", "rclone")
NETWORK = frozenset({*PLAIN, *(f"fuse.{name}" for name in FUSE)})
"""File systems that several machines mount, as Linux names them."""


def network_file_system(path: Path) -> str | None:
    """Return the kind of network file system that holds a path; None if it is local or not known."""
    try:
        lines = MOUNTS.read_text("utf-8", errors="replace").splitlines()
    except OSError:
        return None
    place = path.absolute().resolve()
    mounts = [(Path(parts[1].replace("\\040", " ")), parts[2]) for line in lines if len(parts := line.split()) > 2]
    around = [(mount, kind) for mount, kind in mounts if mount == place or mount in place.parents]
    # of two at one place (an automounter's, and what it mounted there) the later one covers the earlier
    kind = max(reversed(around), key=lambda one: len(one[0].parts), default=(Path(), ""))[1]
    return kind if kind in NETWORK else None


def journal_mode(path: Path) -> str:
    """Return SQLite's journal mode for a database: no write-ahead log on a network file system."""
    return "DELETE" if network_file_system(path) else "WAL"
