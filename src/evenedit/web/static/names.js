// Countries and languages under their names in the language of the page, in its order.
const language = document.documentElement.lang;
for (const list of document.querySelectorAll("select[data-names]")) {
  const names = new Intl.DisplayNames([language], { type: list.dataset.names });
  const named = [...list.options].filter((option) => option.dataset.code);
  for (const option of named) option.textContent = names.of(option.dataset.code) ?? option.textContent;
  named.sort((a, b) => a.textContent.localeCompare(b.textContent, language));
  list.append(...named);
}
