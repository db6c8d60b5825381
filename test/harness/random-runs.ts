// How often random input is tried: in the inner loop (`npm run test:fast`) a fifth as often as in `npm test`.

export const randomRuns = (times: number): number => (process.env['TEST_FAST'] === '1' ? Math.ceil(times / 5) : times);
