"""How the page looks: on a phone, on a desk, on paper; by day and by night.

One blue and greys, told apart by lightness alone, so that nobody has to see colours to read the page.
"""

STYLE = """
:root {
  color-scheme: light dark;
  --page: #ffffff; --card: #f6f7f9; --ink: #1b1f24; --quiet: #59636e; --rule: #d5dae0;
  --strong: #0b5cad; --soft: #b9c2cc;
}
@media (prefers-color-scheme: dark) {
  :root {
    --page: #12161b; --card: #1b2128; --ink: #e8ebee; --quiet: #9aa5b1; --rule: #323b45;
    --strong: #6cb6ff; --soft: #4a5560;
  }
}
* { box-sizing: border-box; }
html { -webkit-text-size-adjust: 100%; text-size-adjust: 100%; }
body {
  margin: 0 auto; padding: 1.5rem 1rem 3rem; max-width: 68rem; background: var(--page); color: var(--ink);
  font: 16px/1.5 "Segoe UI", Roboto, "Helvetica Neue", "Noto Sans", "DejaVu Sans", sans-serif;
  overflow-wrap: anywhere;
}
h1 { font-size: 1.9rem; line-height: 1.2; margin: 0 0 .25rem; }
h2 { font-size: 1.3rem; line-height: 1.3; margin: 2.75rem 0 .5rem; }
h3 { font-size: 1.05rem; margin: 1.5rem 0 .5rem; }
h4 { font-size: .95rem; margin: 0; }
p { margin: .25rem 0 .75rem; max-width: 46rem; }
figure { margin: 0; break-inside: avoid; }
figcaption, .quiet { color: var(--quiet); font-size: .875rem; }
figcaption { margin-top: .5rem; max-width: 46rem; }
.notice { border-left: 4px solid var(--strong); background: var(--card); padding: .5rem .75rem; }
.tiles { display: grid; grid-template-columns: repeat(auto-fit, minmax(9.5rem, 1fr)); gap: .75rem; margin: 1.25rem 0; }
.tiles div { background: var(--card); border-radius: 8px; padding: .7rem .9rem; }
.tiles dt { color: var(--quiet); font-size: .875rem; }
.tiles dd { margin: 0; font-size: 1.5rem; line-height: 1.3; font-weight: 650; font-variant-numeric: tabular-nums; }
.tiles dd + dd { font-size: .875rem; font-weight: 400; color: var(--quiet); }
.two { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 24rem), 1fr)); gap: 0 2.5rem; }
table { border-collapse: collapse; font-size: .9rem; width: 100%; }
th, td { text-align: left; padding: .28rem .5rem; border-bottom: 1px solid var(--rule); font-weight: 400; }
th:first-child, td:first-child { padding-left: 0; }
thead th { color: var(--quiet); font-size: .8rem; }
.number { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; overflow-wrap: normal; }
.bars th[scope=row] { width: 34%; }
.wide { width: 45%; }
.bar { display: block; width: 100%; height: .8rem; }
.bar rect { fill: var(--strong); }
.scroll { overflow-x: auto; }
.scroll td, .scroll th { white-space: nowrap; }
code { font: .85rem/1.4 ui-monospace, "Cascadia Mono", "DejaVu Sans Mono", monospace; unicode-bidi: isolate; }
details { margin: .75rem 0; }
summary { cursor: pointer; color: var(--strong); }
.facts dl { display: grid; grid-template-columns: max-content 1fr; gap: .2rem 1.25rem; font-size: .9rem; }
.facts dt { color: var(--quiet); }
.facts dd { margin: 0; }
.plot { display: grid; grid-template-columns: max-content 1fr; margin-top: .75rem; }
.plot .y {
  position: relative; height: 16rem; min-width: calc(var(--n) * 1ch + .5rem); font-size: .75rem; color: var(--quiet);
}
.plot .y span { position: absolute; right: .5rem; transform: translateY(50%); white-space: nowrap; line-height: 1; }
.plot .field { min-width: 0; }
.plot svg { display: block; width: 100%; height: 16rem; overflow: visible; }
.plot .x { position: relative; height: 1.5rem; font-size: .75rem; color: var(--quiet); }
.plot .x span { position: absolute; top: .5rem; transform: translateX(-50%); white-space: nowrap; line-height: 1; }
.small .y, .small svg { height: 6rem; }
.plot .x .end { transform: translateX(-100%); }
.small .x .odd, .small .x .half { display: none; }
.panels { display: grid; grid-template-columns: repeat(auto-fill, minmax(10rem, 1fr)); gap: 1.5rem 1.25rem; }
.panels p { margin: 0; }
.store { position: absolute; width: 0; height: 0; }
.grid { stroke: var(--rule); stroke-width: 1; vector-effect: non-scaling-stroke; fill: none; }
.line { stroke: var(--strong); stroke-width: 1.75; fill: none; }
.other { stroke: var(--soft); stroke-width: 1; fill: none; }
.line, .curve { vector-effect: non-scaling-stroke; stroke-linejoin: round; }
.area { fill: var(--strong); fill-opacity: .14; }
.heat {
  display: grid; grid-template-columns: minmax(0, 7.5rem) minmax(0, 1fr); gap: .25rem; max-width: 46rem;
  margin-top: .75rem; font-size: .75rem;
}
.heat svg { display: block; width: 100%; aspect-ratio: 1; background: var(--card); }
.heat .corner { align-self: end; text-align: right; padding-right: .25rem; font-size: .75rem; line-height: 1.2; }
.heat .columns { display: grid; grid-template-columns: repeat(var(--n), minmax(0, 1fr)); align-items: end; }
.heat .columns span {
  writing-mode: vertical-rl; transform: rotate(180deg); max-height: 7.5rem; justify-self: center; line-height: 1;
}
.heat .rows { display: grid; grid-template-rows: repeat(var(--n), minmax(0, 1fr)); text-align: right; }
.heat .rows span { align-self: center; padding-right: .25rem; line-height: 1; }
.heat span { overflow: hidden; text-overflow: ellipsis; white-space: nowrap; }
.cell { fill: var(--strong); }
.legend { display: flex; flex-wrap: wrap; gap: .25rem .9rem; font-size: .8rem; color: var(--quiet); margin: .6rem 0 0; }
.legend span { display: inline-flex; align-items: center; gap: .3rem; }
.legend svg { width: .9rem; height: .9rem; background: var(--card); outline: 1px solid var(--rule); }
@media (max-width: 40rem) {
  body { padding-top: 1rem; }
  h1 { font-size: 1.5rem; }
  .plot .y, .plot svg { height: 12rem; }
  .small .y, .small svg { height: 5.5rem; }
  .plot .x .odd { display: none; }
  .heat { grid-template-columns: minmax(0, 5.2rem) minmax(0, 1fr); font-size: .625rem; }
  .heat .columns, .heat .columns span { height: auto; max-height: 5.2rem; }
  th, td { padding: .28rem .3rem; }
}
@media print {
  :root {
    --page: #ffffff; --card: #f3f4f6; --ink: #000000; --quiet: #444444; --rule: #cccccc;
    --strong: #0b5cad; --soft: #bbbbbb;
  }
  body { max-width: none; padding: 0; font-size: 11pt; print-color-adjust: exact; -webkit-print-color-adjust: exact; }
  h2, h3, h4 { break-after: avoid; }
  tr { break-inside: avoid; }
  details:not([open]) { display: none; }
}
"""
