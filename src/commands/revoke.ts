import { clientKeyOf, type OperatorRevocation } from '../admin/control-socket.ts'
import { control } from './control-client.ts'
import type { CommandIo, ExitCode } from './io.ts'
import { type ConfigOptions, configFrom } from './serve.ts'
import { counted } from './status.ts'

export interface RevokeOptions extends ConfigOptions {
  readonly all?: boolean
  readonly client?: string
  readonly grant?: string
}

/**
 * Revokes grants with all their tokens, and closes what was admitted under them. `--grant` and `--client` exit with 1 when
 * they match no grant, because they were probably mistyped; `--all` may match none.
 */
export async function revokeCommand(options: RevokeOptions, io: CommandIo): Promise<ExitCode> {
  const command = revocationOf(options)
  if (command === undefined) {
    io.stderr.write('postern revoke: name exactly one of --all, --client ADDRESS and --grant ID\n')
    return 2
  }
  if ('client' in command && clientKeyOf(command.client) === undefined) {
    io.stderr.write(
      'postern revoke: --client: must be an IP address, such as 192.0.2.7 or 2001:db8::7, or unix\n',
    )
    return 2
  }
  const { stateDir } = configFrom(options, io)
  const answer = await control(stateDir, { method: 'POST', path: '/revoke', command })
  const count =
    answer !== null && typeof answer === 'object' && 'revoked' in answer ? Number(answer.revoked) : 0
  if (count === 0 && !('all' in command)) {
    io.stderr.write(`postern revoke: nothing revoked: ${noMatch(command)}; postern status lists the grants\n`)
    return 1
  }
  io.stdout.write(`${counted(count, 'grant')} revoked\n`)
  return 0
}

/** Says what matched no grant. An id is not repeated: the operator may have given a token instead. */
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
