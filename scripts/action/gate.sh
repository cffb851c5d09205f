#!/usr/bin/env bash
# Holds results against rules; the answer goes to the step's outputs, the summary to evenedit-gate.md.
set -u
arguments=()
while IFS= read -r rule; do
  rule="${rule#"${rule%%[![:space:]]*}"}"
  if [ -n "$rule" ]; then arguments+=(--rule "$rule"); fi
done <<< "${RULES:-}"
if [ -n "${BASELINE:-}" ]; then arguments+=(--baseline "$BASELINE"); fi

evenedit gate "$RESULTS" "${arguments[@]}" --junit "$JUNIT" --markdown evenedit-gate.md 2> evenedit-gate.err
code=$?
cat evenedit-gate.err >&2
case $code in
  0) answer=pass ;;
  1) answer=fail ;;
  3) answer=undecided ;;
  *) answer=mistake
     { echo "### EvenEdit gate: no answer"; echo; echo '```text'; cat evenedit-gate.err; echo '```'; } > evenedit-gate.md ;;
esac
rm -f evenedit-gate.err
echo "answer=$answer" >> "$GITHUB_OUTPUT"
echo "code=$code" >> "$GITHUB_OUTPUT"
if [ -n "${GITHUB_STEP_SUMMARY:-}" ]; then cat evenedit-gate.md >> "$GITHUB_STEP_SUMMARY"; fi
