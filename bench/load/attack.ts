import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import process from 'node:process'
import { fileURLToPath } from 'node:url'
import { startChild } from '../child.ts'

export type AttackKind =
  | 'idle'
  | 'slow head'
  | 'slow body'
  | 'rapid reset'
  | 'rapid reset with a token'
  | 'CONTINUATION'
  | 'PING'
  | 'SETTINGS'
  | 'zero windows'

/** TLS connections with one behaviour. Each is reopened when the sidecar closes it. */
export interface AttackPlan {
  readonly kind: AttackKind
  readonly port: number
  /** Connections open at a time. */
  readonly connections: number
  /** Maximum of opened and reopened connections per second. */
  readonly rate: number
  /** Client addresses in 127.0.network.0/24: all connections come from the first, or spread over all. */
  readonly addresses: 'one' | 'many'
  readonly network: number
  readonly token: string
  /** Path of the response that `zero windows` requests and does not read. */
  readonly path: string
}

export interface AttackReport {
  /** Completed handshakes. */
  readonly opened: number
  /** Connections that the sidecar closed, before or after the handshake. */
  readonly closed: number
}

export interface Attack {
  /** The latest report, at most 100 ms old. */
  report(): Promise<AttackReport>
  /** Ends the attack. Resolves with the final report. */
  stop(): Promise<AttackReport>
}

/**
 * Starts an attacker in a separate process. On a given core it runs at idle priority.
 * @param folder for the report of the process
 */
export async function startAttack(
  plan: AttackPlan,
  folder: string,
  core: number | undefined,
): Promise<Attack> {
  const program = fileURLToPath(new URL('attack-program.ts', import.meta.url))
  const outputTo = join(folder, `report of ${plan.kind}`)
  const args = [program, JSON.stringify(plan)]
  const child = await startChild(process.execPath, args, { core, idlePriority: core !== undefined, outputTo })
  const report = async (): Promise<AttackReport> => {
    const lines = (await readFile(outputTo, 'utf8')).trimEnd().split('\n')
    const none: AttackReport = { opened: 0, closed: 0 }
    return lines.at(-1) === '' ? none : (JSON.parse(lines.at(-1) ?? '') as AttackReport) // `attack-program.ts` prints it
  }
  return {
    report,
    async stop() {
      await child.stop()
      return report()
    },
  }
}
