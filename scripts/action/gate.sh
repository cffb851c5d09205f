#!/usr/bin/env bash
# Holds results against rules; the answer goes to the step's outputs, the summary to evenedit-gate.md.
set -u
rm -f evenedit-gate.md
arguments=()
while IFS= read -r rule; do
  rule="${rule#"${rule%%[![:space:]]*}"}"
  rule="${rule%"${rule##*[![:space:]]}"}"
  if [ -n "$rule" ]; then arguments+=(--rule "$rule"); fi
done <<< "${RULES:-}"
if [ -n "${BASELINE:-}" ]; then arguments+=(--baseline "$BASELINE"); fi
if [ "${IGNORE_JUDGES_ONLY:-false}" = true ]; then arguments+=(--ignore-judges-only); fi

if [ "${RAN:-0}" != 0 ]; then  # results of half a study answer nothing
  code=$RAN
  echo "evenedit run ended with exit code $RAN; its words are in the log of the step before" > evenedit-gate.err
else  # an empty list is an error under -u where bash is old
  evenedit gate "$RESULTS" ${arguments[@]+"${arguments[@]}"} --junit "$JUNIT" --markdown evenedit-gate.md 2> evenedit-gate.err
  code=$?
fi
cat evenedit-gate.err >&2
case ${RAN:-0}:$code in
  0:0) answer=pass ;;
  0:1) answer=fail ;;
  0:3) answer=undecided ;;
  0:*) answer=mistake ;;
  *) answer=incomplete ;;
esac
if [ ! -s evenedit-gate.md ]; then
  { echo "### EvenEdit gate: no answer"; echo; echo '```text'; cat evenedit-gate.err; echo '```'; } > evenedit-gate.md
fi
rm -f evenedit-gate.err
echo "answer=$answer" >> "$GITHUB_OUTPUT"
echo "code=$code" >> "$GITHUB_OUTPUT"
if [ -n "${GITHUB_STEP_SUMMARY:-}" ]; then cat evenedit-gate.md >> "$GITHUB_STEP_SUMMARY"; fi
