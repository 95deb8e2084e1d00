import { statSync } from 'node:fs'
import { join } from 'node:path'
import { mayRestart, type PermissionedProcess } from '../system/permissions.ts'
import { isWithheld, SetupError } from '../system/setup-error.ts'
import { shellWord } from '../system/text.ts'
import type { CommandIo, ProgramIo } from './command.ts'
import type { ConfigOptions } from './configuration.ts'
import { OWN_CONFIG } from './help.ts'

/** The options that name another configuration, or need none. */
interface Naming extends Partial<ConfigOptions> {
  readonly stateDir?: string
  readonly admin?: string
}

type Place = Pick<CommandIo, 'env' | 'folder' | 'user'> & Pick<ProgramIo, 'permissions'>

/**
 * `postern.yaml` of the working directory, if it exists and `POSTERN_CONFIG` names no other file. Throws a `SetupError` if another user than
 * root may write the file or its folder: the file says which programs get the password, and a command that root types in a folder of another
 * user must not follow it.
 */
export function findOwnConfig({ env, folder, user, permissions }: Place): string | undefined {
  if (env.POSTERN_CONFIG !== undefined || folder === undefined || user === undefined) return undefined
  const file = join(folder, OWN_CONFIG)
  const facts = factsOf(file, permissions)
  if (facts === undefined || (facts.mode & TYPE) !== REGULAR) return undefined
  requireOwn(file, facts, user)
  const around = factsOf(folder, permissions)
  if (around !== undefined) requireOwn(folder, around, user)
  return file
}

/**
 * The options with `findOwnConfig` as configuration, unless they name one. Says on standard error which file that is.
 *
 * @param command the name of the command, for the line on standard error
 */
export function withOwnConfig<Options extends Naming>(
  options: Options,
  command: string,
  io: Place & Pick<CommandIo, 'stderr'>,
): Options {
  const { config, instance, stateDir, admin } = options
  const isNamed = [config, instance, stateDir, admin].some((each) => each !== undefined)
  const file = isNamed ? undefined : findOwnConfig(io)
  if (file === undefined) return options
  io.stderr.write(`postern ${command}: the configuration is ${file}\n`)
  return { ...options, config: file, isOwn: true }
}

interface Facts {
  readonly uid: number
  readonly mode: number
}

/** The bits of a mode for the type of a file, and a regular file among them. */
const [TYPE, REGULAR] = [0o170000, 0o100000]

/** Undefined if there is no such path, or if this process may not search its folder. */
function factsOf(path: string, { permission, statOutside }: PermissionedProcess): Facts | undefined {
  try {
    return statSync(path)
  } catch (error) {
    // `serve` may not look here before it has restarted with more permissions. So another program looks: without a file no restart is needed.
    return isWithheld(error) && mayRestart({ permission }) ? statOutside(path) : undefined
  }
}

function requireOwn(path: string, { uid, mode }: Facts, user: number): void {
  const shown = (mode & 0o7777).toString(8).padStart(4, '0')
  const isForeign = uid !== 0 && uid !== user
  if (!isForeign && (mode & 0o022) === 0) return
  const mend = isForeign ? `chown ${user} ${shellWord(path)}` : `chmod go-w ${shellWord(path)}`
  throw new SetupError(
    `${path} belongs to user ${uid} and has mode ${shown}, so another user than root and you (${user}) may write it`,
    { remedy: `it is not used without --config: name a file with --config, or ${mend}` },
  )
}
