import type { Client } from './server.ts'

/** The counters of a server since its start. */
export interface Counters {
  /** Processor time of the server (µs). */
  readonly processor: number
  /** Bytes that it received and sent. */
  readonly received: number
  readonly sent: number
  /** Calls of each command. Those inside a script count, too. */
  readonly calls: ReadonlyMap<string, number>
}

/**
 * What one operation costs the server: processor time (µs), commands that arrived over a connection (those inside a script are part of
 * it), bytes that it received and sent.
 */
export type Usage = Readonly<Record<(typeof NAMES)[number], number>>

const NAMES = ['processor', 'commands', 'received', 'sent'] as const

/** A usage whose numbers this function makes. */
function usageOf(value: (name: keyof Usage) => number): Usage {
  return Object.fromEntries(NAMES.map((name) => [name, value(name)])) as Usage // of all its names
}

/** Reads INFO. Asking costs the server about 50 µs and 5 KiB, which belong to the next difference. */
export async function readCounters(client: Client): Promise<Counters> {
  return parseInfo(await client.sendCommand<string>(['INFO', 'everything']))
}

/** Reads the text of INFO. Throws if a counter is missing. */
export function parseInfo(text: string): Counters {
  const values = new Map(
    [...text.matchAll(/^([^:\r\n]+):(.*?)\r?$/gm)].map(([, name = '', value = '']) => [name, value]),
  )
  const number = (name: string): number => {
    const value = Number(values.get(name) ?? Number.NaN)
    if (Number.isNaN(value)) throw new Error(`INFO has no ${name}`)
    return value
  }
  return {
    processor: (number('used_cpu_user') + number('used_cpu_sys')) * 1e6,
    received: number('total_net_input_bytes'),
    sent: number('total_net_output_bytes'),
    calls: new Map(
      [...text.matchAll(/^cmdstat_([^:]+):calls=(\d+)/gm)].map(([, name = '', count]) => [
        name,
        Number(count),
      ]),
    ),
  }
}

/** Commands that this bench and the sidecars send over a connection. No script calls them. */
const SENT = ['evalsha', 'eval', 'xread', 'ping', 'wait']

/** What each of `operations` operations cost between two readings. */
export function usageBetween(before: Counters, after: Counters, operations: number): Usage {
  const commands = ({ calls }: Counters): number =>
    SENT.reduce((sum, name) => sum + (calls.get(name) ?? 0), 0)
  return usageOf((name) => {
    const change = name === 'commands' ? commands(after) - commands(before) : after[name] - before[name]
    return change / operations
  })
}
