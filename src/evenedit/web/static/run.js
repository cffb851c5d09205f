// The page follows the run: its changing part is fetched again every few seconds while the page is in view.
(() => {
  const part = document.getElementById("run");
  const EVERY = 4000;
  async function look() {
    if (!document.hidden) {
      try {
        const answer = await fetch(part.dataset.state);
        if (answer.ok && !answer.redirected) part.innerHTML = await answer.text();
      } catch { /* the server is away: ask again later */ }
    }
    setTimeout(look, EVERY);
  }
  setTimeout(look, EVERY);
})();
