import type { Client } from './server.ts'

/** The counters of a server since its start. */
export interface Counters {
  /** Processor time of the server (µs). */
  readonly processor: number
  /** All memory that it uses (bytes). */
  readonly memory: number
  /** The part of it that belongs to connections (bytes). The server brings this up to date once a second. */
  readonly connections: number
  /** Bytes that it received and sent. */
  readonly received: number
  readonly sent: number
  /** Calls of each command. Those inside a script count, too. */
  readonly calls: ReadonlyMap<string, number>
}

/** What one operation costs the server. */
export interface Usage {
  /** Processor time (µs). */
  readonly processor: number
  /** Commands that arrived over a connection: those inside a script are part of it. */
  readonly commands: number
  /** Bytes. */
  readonly received: number
  readonly sent: number
}

/** Reads INFO. Asking costs the server about 50 µs and 5 KiB, which belong to the next difference. */
export async function readCounters(client: Client): Promise<Counters> {
  return parseInfo(await client.sendCommand<string>(['INFO', 'everything']))
}

/** Reads the text of INFO. Throws if a counter is missing. */
export function parseInfo(text: string): Counters {
  const values = new Map(
    text.split('\r\n').flatMap((line): [string, string][] => {
      const colon = line.indexOf(':')
      return colon < 0 ? [] : [[line.slice(0, colon), line.slice(colon + 1)]]
    }),
  )
  const number = (name: string): number => {
    const value = Number(values.get(name) ?? Number.NaN)
    if (Number.isNaN(value)) throw new Error(`INFO has no ${name}`)
    return value
  }
  const calls = [...values].flatMap(([name, value]): [string, number][] => {
    const count = /^calls=(\d+)/.exec(value)?.[1]
    return name.startsWith(COMMAND) && count !== undefined
      ? [[name.slice(COMMAND.length), Number(count)]]
      : []
  })
  return {
    processor: (number('used_cpu_user') + number('used_cpu_sys')) * 1e6,
    memory: number('used_memory'),
    connections: number('mem_clients_normal'),
    received: number('total_net_input_bytes'),
    sent: number('total_net_output_bytes'),
    calls: new Map(calls),
  }
}

const COMMAND = 'cmdstat_'

/** Commands that this bench and the sidecars send over a connection. No script calls them. */
const SENT = ['evalsha', 'eval', 'xread', 'ping', 'wait', 'mget', 'subscribe', 'script|load']

/** What each of `operations` operations cost between two readings. */
export function usageBetween(before: Counters, after: Counters, operations: number): Usage {
  const sent = (counters: Counters): number =>
    SENT.reduce((sum, name) => sum + (counters.calls.get(name) ?? 0), 0)
  return {
    processor: (after.processor - before.processor) / operations,
    commands: (sent(after) - sent(before)) / operations,
    received: (after.received - before.received) / operations,
    sent: (after.sent - before.sent) / operations,
  }
}

/** Runs `operations` operations and tells what each of them cost the server. */
export async function usageOf(
  client: Client,
  operations: number,
  run: () => Promise<unknown>,
): Promise<Usage> {
  const before = await readCounters(client)
  await run()
  return usageBetween(before, await readCounters(client), operations)
}
