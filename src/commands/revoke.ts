import type { Revoked } from '../admin/control-socket.ts'
import { clientKeyOf, type OperatorRevocation } from '../admin/operator-revocation.ts'
import { SetupError } from '../system/setup-error.ts'
import { columnsOf, counted, wrapped } from './columns.ts'
import type { CommandIo, ExitCode } from './command.ts'
import { control } from './control.ts'
import { type SidecarOptions, stateDirOf } from './find-sidecar.ts'

export interface RevokeOptions extends SidecarOptions {
  readonly all?: boolean
  readonly client?: string
  readonly grant?: string
}

/**
 * Revokes grants with all their tokens and closes their connections. Rejects with exit code 1 if `--grant` or `--client` matches no grant,
 * which is probably a typing error. `--all` may match none.
 */
export async function revokeCommand(options: RevokeOptions, io: CommandIo): Promise<ExitCode> {
  const command = revocationOf(options)
  if (command === undefined) {
    throw new SetupError('name exactly one of --all, --client ADDRESS and --grant ID')
  }
  if ('client' in command && clientKeyOf(command.client) === undefined) {
    throw new SetupError('--client: must be an IP address, such as 192.0.2.7 or 2001:db8::7, or unix')
  }
  const stateDir = stateDirOf('revoke', options, io)
  const { revoked, elsewhere } = await control<Revoked>(stateDir, {
    method: 'POST',
    path: '/revoke',
    command,
  })
  const note = elsewhere === undefined ? '' : `; ${elsewhereOf(command)}`
  if (revoked === 0 && !('all' in command)) {
    const remedy = `postern status lists the grants${note}`
    throw new SetupError(`nothing revoked: ${noMatch(command)}`, { exitCode: 1, remedy })
  }
  io.stdout.write(`${wrapped(`${counted(revoked, 'grant')} revoked${note}`, 0, columnsOf(io.stdout))}\n`)
  return 0
}

/** A note about the requests of ended grants at other sidecars. Each sidecar knows only its own requests. */
function elsewhereOf(command: OperatorRevocation): string {
  const which = 'uploads and downloads of ended grants at other sidecars'
  return 'client' in command ? `${which} go on: run it there, too` : `${which} end, too, and are not counted`
}

/** The message does not repeat the id: the operator may have typed a token instead. */
function noMatch(command: Exclude<OperatorRevocation, { readonly all: true }>): string {
  return 'client' in command ? `no grant of client ${command.client}` : 'no such grant'
}

function revocationOf({ all, client, grant }: RevokeOptions): OperatorRevocation | undefined {
  const named: readonly OperatorRevocation[] = [
    ...(all === true ? [{ all: true } as const] : []),
    ...(client === undefined ? [] : [{ client }]),
    ...(grant === undefined ? [] : [{ grant }]),
  ]
  return named.length === 1 ? named[0] : undefined
}
