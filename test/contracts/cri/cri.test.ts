// The contract of CRI runtimes on the fake, in its two ways, on every containerd there is, and on CRI-O where somebody has it; two of them at a time, since
// most of it is waiting for containers.
// runs: gate, at rest
// shows: containerd 1.6, 1.7, 2.1
import { describe } from 'node:test';
import { missingContainerds } from '../../harness/containerd-binaries.ts';
import { BUSYBOX_IMAGE, startContainerd } from '../../harness/containerd.ts';
import { crioBinaries, startCrio } from '../../harness/crio.ts';
import { FakeCri } from '../../fakes/fake-cri.ts';
import { criContract } from './contract.ts';

const VERSIONS = ['1.6', '1.7', '2.1'] as const;
const missing = await missingContainerds(VERSIONS);

describe('CRI contract', { concurrency: 2 }, () => {
  for (const version of VERSIONS) {
    const skip = missing.get(version) ?? false;
    describe(`on containerd ${version}`, { skip, concurrency: 1 }, () =>
      criContract(() => startContainerd({ version }), { events: version !== '1.6' }),
    );
  }

  const crio = crioBinaries();
  const skip = crio === undefined && 'CRIO_BINARIES names no folder with crio, conmon and pinns';
  describe('on CRI-O', { skip, concurrency: 1 }, () =>
    criContract(() => startCrio(crio ?? ''), { events: true, crio: true }),
  );

  for (const ways of ['containerd', 'cri-o'] as const)
    describe(`on the fake with the ways of ${ways}`, { concurrency: 1 }, () => {
      const open = async () => {
        const fake = new FakeCri({ ways });
        fake.state.addImage(BUSYBOX_IMAGE);
        await fake.start();
        const { root, runtime, images } = fake;
        const importImage = async (ref: string): Promise<void> => void fake.state.addImage(ref);
        return { root, runtime, images, importImage, stop: () => fake.stop() };
      };
      criContract(open, { events: true, crio: ways === 'cri-o' });
    });
});
