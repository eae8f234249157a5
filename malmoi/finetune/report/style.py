"""The report's style sheet: one column that fits a phone, light and dark as the reader has it."""

# Fonts with Hangul that systems carry, as in malmoi/app/.streamlit/config.toml; nothing is fetched.
STYLE = """
:root {
  color-scheme: light dark;
  --page: #ffffff; --panel: #f5f7f9; --ink: #1c2126; --muted: #57606a; --rule: #d5dbe1;
  --accent: 31 111 235; --warm: 214 90 24;
}
@media (prefers-color-scheme: dark) {
  :root {
    --page: #15181c; --panel: #1e2329; --ink: #e6e9ed; --muted: #a0aab5; --rule: #39424c;
    --accent: 100 165 250; --warm: 250 150 70;
  }
}
* { box-sizing: border-box; }
body {
  margin: 0; background: var(--page); color: var(--ink);
  font: 16px/1.6 "Noto Sans KR", "Noto Sans CJK KR", "Apple SD Gothic Neo", "Malgun Gothic",
    NanumGothic, "Nanum Gothic", sans-serif;
  word-break: keep-all; overflow-wrap: anywhere; -webkit-text-size-adjust: 100%;
}
main, header, footer { max-width: 60rem; margin: 0 auto; padding: 0 1rem; }
h1 { font-size: 1.5rem; line-height: 1.3; margin: 1.5rem 0 1rem; }
h2 {
  font-size: 1.2rem; margin: 2.5rem 0 .5rem; padding-top: .5rem; border-top: 1px solid var(--rule);
}
h3 { font-size: 1rem; margin: 1.25rem 0 .25rem; }
p { margin: .5rem 0; }
a { color: rgb(var(--accent)); }
.note, figcaption, footer, small { color: var(--muted); font-size: .875rem; }
nav { display: flex; flex-wrap: wrap; gap: .25rem 1rem; margin: 1rem 0; font-size: .9rem; }
nav a { padding: .25rem 0; }
.cards {
  display: grid; grid-template-columns: repeat(auto-fit, minmax(9.5rem, 1fr)); gap: .75rem;
}
.card { background: var(--panel); border-radius: .5rem; padding: .75rem; }
.card b {
  display: block; font-size: 1.15rem; line-height: 1.4; white-space: nowrap;
  font-variant-numeric: tabular-nums;
}
.card span { display: block; color: var(--muted); font-size: .8rem; line-height: 1.4; }
.figures {
  display: grid; gap: 1rem;
  grid-template-columns: repeat(auto-fit, minmax(min(20rem, 100%), 1fr));
}
figure { margin: .5rem 0; max-width: 26rem; }
figure h3 { margin: 0 0 .25rem; }
svg { display: block; width: 100%; height: auto; }
svg text { fill: var(--muted); font-size: 12px; }
svg .grid { stroke: var(--rule); stroke-width: 1; }
svg .axis { stroke: var(--muted); stroke-width: 1; }
svg .diagonal, svg .mean { stroke: rgb(var(--warm)); stroke-width: 1.5; stroke-dasharray: 5 4; }
svg .curve, svg .whisker { stroke: rgb(var(--accent)); stroke-width: 2; }
svg .whisker { opacity: .6; }
svg .bar { fill: rgb(var(--accent) / .45); }
svg .count { fill: var(--muted); }
svg .point { fill: rgb(var(--accent)); stroke: var(--page); stroke-width: 1; }
.wide { overflow-x: auto; max-width: 100%; }
.beside { display: flex; flex-wrap: wrap; align-items: flex-start; gap: .5rem 2.5rem; }
.beside figure { flex: 0 1 25rem; }
table {
  border-collapse: collapse; font-size: .9rem; font-variant-numeric: tabular-nums;
  overflow-wrap: break-word;
}
th, td { padding: .35rem .6rem; border-bottom: 1px solid var(--rule); text-align: right; }
th { font-weight: 600; }
thead th { color: var(--muted); font-weight: 500; vertical-align: bottom; white-space: nowrap; }
tbody th, thead th:first-child { text-align: left; }
tbody th { min-width: 4.5rem; }
td { white-space: nowrap; }
td .note { white-space: normal; }
span.bar { display: flex; align-items: center; gap: .5rem; }
.bar i { width: clamp(3rem, 14vw, 7rem); height: .6rem; border-radius: .3rem; background:
  linear-gradient(rgb(var(--accent)) 0 0) no-repeat 0 0 / calc(var(--v) * 100%) 100%, var(--rule); }
.bars thead th:nth-child(2) { text-align: left; }
.matrix td {
  text-align: center; min-width: 2.4rem; padding: .35rem; border: 1px solid var(--rule);
}
.matrix thead th { text-align: center; }
.matrix tbody th { position: sticky; left: 0; background: var(--page); white-space: nowrap; }
.matrix .right { background: rgb(var(--accent) / calc(var(--v) * .6)); }
.matrix .wrong { background: rgb(var(--warm) / calc(var(--v) * .6)); }
.matrix .none { color: var(--muted); opacity: .5; }
.matrix.many { font-size: .75rem; }
.matrix.many td { min-width: 1.7rem; padding: .15rem; }
.matrix.many thead th:not(:first-child) {
  writing-mode: vertical-rl; text-align: right; padding: .35rem .15rem;
}
.matrix.many tbody th { padding: .15rem .4rem; }
.label {
  display: inline-block; padding: 0 .45rem; border: 1px solid var(--rule); border-radius: .3rem;
  background: var(--panel); font-weight: 600; font-size: .9rem;
}
.texts { list-style: none; margin: .75rem 0; padding: 0; }
.texts li { padding: .6rem 0; border-bottom: 1px solid var(--rule); }
.texts small { margin-left: .5rem; }
.text { margin: .35rem 0 0; white-space: pre-line; }
.text summary { cursor: pointer; }
.text[open] summary span { display: none; }
.text[open] summary::after { content: "접기"; color: var(--muted); }
.text p { margin: .5rem 0 0; padding-left: .75rem; border-left: 3px solid var(--rule); }
.words {
  display: flex; flex-wrap: wrap; gap: .3rem .6rem; margin: .25rem 0; padding: 0; list-style: none;
}
.words small { margin-left: .2rem; }
dl {
  display: grid; grid-template-columns: fit-content(40%) 1fr; gap: .15rem 1rem; font-size: .875rem;
}
dt { color: var(--muted); overflow-wrap: anywhere; }
dd { margin: 0; word-break: break-word; }
footer { margin-top: 2.5rem; padding-bottom: 2rem; }
@media (max-width: 30rem) {
  th, td { padding: .35rem .3rem; }
  .bar i { width: 2.25rem; }
}
"""
