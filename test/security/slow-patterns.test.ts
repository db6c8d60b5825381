// The house rule that keeps patterns to one pass: what it finds, and what it lets pass.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { isSlow, regularExpressions } from '../../scripts/regular-expressions.ts';

test('a repetition that is tried from every position is found', () => {
  const slow = [
    /\/+$/,
    /\s+$/,
    /".*" not found/,
    /[#;].*$/,
    /\{(.+)\}$/,
    /(?:^|a)b+c/,
    /(?:a|b)*c/,
    /^a$|x*y/,
    /^a+$/m,
    /x{2,}y/,
  ];
  for (const pattern of slow) assert.equal(isSlow(pattern), true, String(pattern));
});

test('an anchor, a bound, an end, or a run that no second beginning is in: one pass', () => {
  const quick = [
    /^\s+$/,
    /x+/,
    /:\d+$/,
    /-----BEGIN [^-]*-----/,
    /x{0,9}y/,
    /^(?:a|b)*c/,
    /^a+$|^b+$/,
    /[x+]y/,
    /x\+y/,
    /a+/g,
    /a+b/y,
  ];
  for (const pattern of quick) assert.equal(isSlow(pattern), false, String(pattern));
});

test('literals are found among strings, comments and divisions', () => {
  const code = [
    "const a = /b[/']c/g; // no /d+e/",
    'const f = g / h / i;',
    "const j = 'k /l+m/'; /* /n+o/ */",
    'return /q\\/r/.test(p.replace(x => /s/.test(x)));',
  ].join('\n');
  assert.deepEqual(
    regularExpressions(code).map(({ source, flags }) => `${source} ${flags}`.trim()),
    ["b[/']c g", 'q\\/r', 's'],
  );
});
