import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { envBytes, envText } from './env-bytes.ts';

test('bytes come back as they were, and text is text', () => {
  const pieces = fc.constantFrom('a', 'é', '€', '😀', '\u{10ffff}').map((text) => [...Buffer.from(text)]);
  const byte = fc.nat(255).map((value) => [value]);
  fc.assert(
    fc.property(fc.array(fc.oneof(pieces, byte), { maxLength: 30 }), (parts) => {
      const bytes = Buffer.from(parts.flat());
      assert.deepEqual(envBytes(envText(bytes)), bytes);
    }),
    { numRuns: 2000 },
  );
  for (const bytes of ['c080', 'e08080', 'eda080', 'f0808080', 'f4908080', 'f5', 'e282', 'ff'])
    assert.match(envText(Buffer.from(`61${bytes}`, 'hex')), /^a[\udc80-\udcff]+$/, bytes);
});

test('a mebibyte of bytes that are no text is read and written in one pass', () => {
  const bytes = Buffer.alloc(1024 * 1024, Buffer.from([0x61, 0xff, 0xc3]));
  const before = process.threadCpuUsage();
  assert.deepEqual(envBytes(envText(bytes)), bytes);
  const { user, system } = process.threadCpuUsage(before);
  assert.ok(user + system < 500_000, `${user + system} µs`);
});
