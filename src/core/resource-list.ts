// Amounts of resources written as text maps: what a node keeps for the system (`cpu: 200m, memory: 500Mi`).
import { formatQuantity, tryParseQuantity, type Quantity } from './quantity.ts';

const RESERVABLE = new Set(['cpu', 'memory', 'ephemeral-storage', 'pid']);

/** The amounts of a reservation, or the reason why it is none. */
export function parseReservation(list: Readonly<Record<string, string>>): ReadonlyMap<string, Quantity> | string {
  const out = new Map<string, Quantity>();
  for (const [name, text] of Object.entries(list)) {
    if (!RESERVABLE.has(name)) return `cannot reserve "${name}" resource`;
    const amount = tryParseQuantity(text);
    if (amount === undefined) return `failed to parse quantity ${JSON.stringify(text)} for "${name}" resource`;
    if (amount.nano < 0n) return `resource quantity for "${name}" cannot be negative: ${formatQuantity(amount)}`;
    out.set(name, amount);
  }
  return out;
}
