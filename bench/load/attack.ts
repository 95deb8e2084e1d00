import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import process from 'node:process'
import { fileURLToPath } from 'node:url'
import { startChild } from '../child.ts'

export type AttackKind =
  | 'idle'
  | 'rapid reset'
  | 'rapid reset with a token'
  | 'CONTINUATION'
  | 'PING'
  | 'SETTINGS'
  | 'zero windows'

/** TLS connections that do one thing each; one that the sidecar closes is opened again. */
export interface AttackPlan {
  readonly kind: AttackKind
  readonly port: number
  /** Open at once. */
  readonly connections: number
  /** The most that are opened in a second, first and again. */
  readonly rate: number
  /** Of the client's, in 127.0.network.0: the connections spread over all of them, or all from the first. */
  readonly addresses: 'one' | 'many'
  readonly network: number
  readonly token: string
  /** For `zero windows`: what is asked for and not taken. */
  readonly path: string
}

export interface AttackReport {
  /** Handshakes that were finished. */
  readonly opened: number
  /** Connections that the sidecar closed, with a handshake or without. */
  readonly closed: number
}

export interface Attack {
  /** How it goes, a moment ago at the latest. */
  look(): Promise<AttackReport>
  /** Ends it, and tells how it went. */
  stop(): Promise<AttackReport>
}

/**
 * An attacker in a process of its own. On a core that is named it gives way to whoever is measured there.
 * @param folder where the process may leave its report
 */
export async function startAttack(
  plan: AttackPlan,
  folder: string,
  core: number | undefined,
): Promise<Attack> {
  const program = fileURLToPath(new URL('attack-program.ts', import.meta.url))
  const outputTo = join(folder, `report of ${plan.kind}`)
  const args = [program, JSON.stringify(plan)]
  const child = await startChild(process.execPath, args, { core, humble: core !== undefined, outputTo })
  const look = async (): Promise<AttackReport> => {
    const lines = (await readFile(outputTo, 'utf8')).trimEnd().split('\n')
    const none: AttackReport = { opened: 0, closed: 0 }
    return lines.at(-1) === '' ? none : (JSON.parse(lines.at(-1) ?? '') as AttackReport) // of our own program
  }
  return {
    look,
    async stop() {
      await child.stop()
      return look()
    },
  }
}
