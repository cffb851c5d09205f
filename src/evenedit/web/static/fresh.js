// The report follows the study: when a newer one is there, the page shows it.
(() => {
  const note = document.getElementById("fresh");
  const SOON = 3000;
  const LATER = 30000;
  async function look() {
    let wait = LATER;
    try {
      const now = await (await fetch("/report/state", { headers: { Accept: "application/json" } })).json();
      if (now.digest && now.digest !== note.dataset.digest) {
        location.reload();
        return;
      }
      note.hidden = !now.making && !now.problem;
      if (now.problem) note.textContent = now.problem;
      else if (now.making && note.dataset.digest) note.textContent = "Newer ratings are there: the report is being made again, and this page will follow.";
      wait = now.making ? SOON : LATER;
    } catch { /* the server is away: ask again later */ }
    setTimeout(look, wait);
  }
  setTimeout(look, SOON);
})();
