import cv2
import numpy as np

from evenedit import NoFace, Read


class Sharpness:
    """Compares how sharp the face is before and after the edit."""

    id, version = "sharpness", "1"
    numbers = {"sharpness_log2": {"title": "Sharpness of the face", "unit": "log2", "tolerance": 0.5}}
    answers = [
        {
            "id": "face_blurred",
            "kind": "yes-no",
            "title": "Face blurred",
            "harm": "high",
            "text": "Is the face less sharp than in the source?",
            "rates": {"face_blurred": {"is": ["yes"], "phrase": "show a face less than half as sharp as before"}},
        }
    ]

    def __init__(self, *, cut: float = -1.0):
        self.cut = cut

    def read(self, source, edited, context):
        faces = context.face(source), context.face(edited)
        for where, face in zip(("source", "edited picture"), faces, strict=True):
            if isinstance(face, NoFace):
                return dict.fromkeys(("sharpness_log2", "face_blurred"), Read(None, reason=f"{where}: {face.reason}"))
        before, after = (self._of(p, f) for p, f in zip((source, edited), faces, strict=True))
        change = float(np.log2((after + 1) / (before + 1)))
        return {"sharpness_log2": Read(change), "face_blurred": Read("yes" if change < self.cut else "no")}

    def _of(self, picture, face):
        x, y, w, h = (max(0, int(v)) for v in face.box)
        gray = cv2.cvtColor(picture.rgb[y : y + h, x : x + w], cv2.COLOR_RGB2GRAY)
        return cv2.Laplacian(cv2.resize(gray, (160, 160), interpolation=cv2.INTER_AREA), cv2.CV_64F).var()
