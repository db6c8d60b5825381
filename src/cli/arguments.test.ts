import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { podOf, readArguments, type NodeArguments } from './arguments.ts';

describe('the arguments of kubelet node', () => {
  const DEFAULTS = {
    socket: '/var/lib/kubelet/node/kubelet.sock',
    rootDir: '/var/lib/kubelet',
    output: 'text',
    watch: undefined,
    namespace: undefined,
    operand: undefined,
    runtimeEndpoint: undefined,
  };
  for (const [words, expected] of [
    ['top', { command: 'top' }],
    ['why web', { command: 'why', operand: 'web' }],
    ['why -n shop web -o json', { command: 'why', operand: 'web', namespace: 'shop', output: 'json' }],
    ['events --namespace=shop', { command: 'events', namespace: 'shop' }],
    ['pulls --watch', { command: 'pulls', watch: true }],
    ['top --once', { command: 'top', watch: false }],
    ['top --root-dir /r', { command: 'top', rootDir: '/r', socket: '/r/node/kubelet.sock' }],
    ['top --root-dir=/r --socket=/s', { command: 'top', rootDir: '/r', socket: '/s' }],
    ['doctor --runtime-endpoint unix:///c', { command: 'doctor', runtimeEndpoint: 'unix:///c' }],
    ['support-bundle /tmp/x.tar.gz', { command: 'support-bundle', operand: '/tmp/x.tar.gz' }],
  ] as const)
    it(words, () => assert.deepEqual(readArguments(words.split(' ')), { ...DEFAULTS, ...expected }));

  for (const [words, problem] of [
    ['', ''],
    ['--help', ''],
    ['top --help', ''],
    ['restart', 'unknown command "restart"'],
    ['top web', 'unexpected argument "web"'],
    ['why a b', 'unexpected argument "b"'],
    ['top --quick', 'unknown option --quick'],
    ['top --watch=5', 'unknown option --watch=5'],
    ['top -o', '--output needs a value'],
    ['top -o yaml', '--output is text or json, not "yaml"'],
  ] as const)
    it(`${words}: ${problem}`, () => assert.equal(readArguments(words === '' ? [] : words.split(' ')), problem));

  it('name a pod with or without its namespace', () => {
    const of = (words: string) => podOf(readArguments(words.split(' ')) as NodeArguments);
    assert.deepEqual(of('why web'), { namespace: 'default', name: 'web' });
    assert.deepEqual(of('why web -n shop'), { namespace: 'shop', name: 'web' });
    assert.deepEqual(of('why shop/web'), { namespace: 'shop', name: 'web' });
    assert.equal(of('why'), undefined);
  });
});
