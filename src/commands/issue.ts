import type { Issued } from '../admin/control-socket.ts'
import { LONGEST, problemOfLabel, SHORTEST } from '../admin/operator-handout.ts'
import { SetupError } from '../system/setup-error.ts'
import type { Handout } from '../tokens/handout.ts'
import { columnsOf, wrapped } from './columns.ts'
import type { CommandIo, ExitCode, ProgramIo } from './command.ts'
import { type ConfigOptions, configFrom, withFlags } from './configuration.ts'
import { control } from './control.ts'
import type { Outputs } from './output.ts'
import { spanOf, timeText, typedDuration } from './times.ts'

export interface IssueOptions extends ConfigOptions {
  readonly for?: string
  readonly name?: string
  readonly label?: string
  readonly json: boolean
}

/**
 * Issues one access token for a client that cannot log in. Prints the token alone on standard output, so that a file can take it, and its
 * grant and end on standard error. Nothing shows the token again, so a token that cannot be printed is revoked. Rejects with exit code 2
 * for a bad flag or an unknown name, with 1 if the sidecar refuses.
 */
export async function issueCommand(
  options: IssueOptions,
  io: CommandIo & Pick<Outputs, 'lostOutput'> & Pick<ProgramIo, 'typed'>,
): Promise<ExitCode> {
  const command = handoutOf(options)
  const { stateDir, tokens } = configFrom(options, io)
  const issued = await control<Issued>(stateDir, { method: 'POST', path: '/issue', command })
  const { accessToken, grant, expiresAt } = issued
  io.stdout.write(options.json ? `${JSON.stringify(issued)}\n` : `${accessToken}\n`)
  if (io.lostOutput() !== undefined) {
    await revokeUnprinted(grant, stateDir, io)
    return 1
  }
  if (options.json) return 0
  const restart = tokens.store === 'memory' ? ', or at a restart (tokens.store: memory)' : ''
  const ends = `grant ${grant} ends at ${timeText(expiresAt)}, in ${spanOf(command.lifetime)}${restart}`
  io.stderr.write(
    `${wrapped(ends, 2, columnsOf(io.stderr))}\n` +
      `the token is shown only now; this ends it:\n  ${withFlags(io.typed, `revoke --grant ${grant}`, options)}\n`,
  )
  return 0
}

/** Revokes a token that was not printed. It would count toward the most issued tokens, and end the alarm about the token to be replaced. */
async function revokeUnprinted(grant: string, stateDir: string, { stderr }: CommandIo): Promise<void> {
  const isRevoked = await control(stateDir, { method: 'POST', path: '/revoke', command: { grant } }).then(
    () => true,
    () => false,
  )
  const remedy = isRevoked ? `so grant ${grant} is revoked` : `and postern revoke --grant ${grant} ends it`
  stderr.write(`${wrapped(`the token could not be printed, ${remedy}`, 0, columnsOf(stderr))}\n`)
}

const FOR = 'say for how long the token is valid, from 1m to 366d, such as 90d or 2h'

function handoutOf({ for: given, name = '', label = '' }: IssueOptions): Handout {
  const lifetime = given === undefined ? undefined : typedDuration(given)
  if (lifetime === undefined || lifetime < SHORTEST || lifetime > LONGEST)
    throw new SetupError(`--for: ${FOR}`)
  const problem = label === '' ? undefined : problemOfLabel(label)
  if (problem !== undefined) throw new SetupError(`--label: ${problem}`)
  return { name, label, lifetime }
}
