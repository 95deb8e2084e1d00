import { constants } from 'node:fs'
import { join } from 'node:path'
import { createLook, otherWriters } from '../system/other-writers.ts'
import { SetupError } from '../system/setup-error.ts'
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
 * `postern.yaml` of the working directory, if it exists and `POSTERN_CONFIG` names no other file. Rejects with a `SetupError` if another user
 * than root may write it, or put another one in its place: the file says which programs get the password, and a command that root types in
 * a folder of another user must not follow it.
 */
export async function findOwnConfig({ env, folder, user, permissions }: Place): Promise<string | undefined> {
  if (env.POSTERN_CONFIG !== undefined || folder === undefined || user === undefined) return undefined
  const file = join(folder, OWN_CONFIG)
  const look = createLook(permissions)
  const facts = await look.facts(file)
  if (facts === undefined || (facts.mode & constants.S_IFMT) === constants.S_IFDIR) return undefined
  // The folder by itself, too: as the end of a path it must not be sticky, because anyone could have put the file there first.
  for (const path of [folder, file]) {
    const [writer] = await otherWriters(path, { user, look })
    if (writer === undefined) continue
    throw new SetupError(`${file} is not used without --config: ${writer.reason}`, {
      remedy: `name a file with --config, or ${writer.remedy}`,
    })
  }
  return file
}

/**
 * The options with `findOwnConfig` as configuration, unless they name one. Says on standard error which file that is.
 *
 * @param command the name of the command, for the line on standard error
 */
export async function withOwnConfig<Options extends Naming>(
  options: Options,
  command: string,
  io: Place & Pick<CommandIo, 'stderr'>,
): Promise<Options> {
  const { config, instance, stateDir, admin } = options
  const isNamed = [config, instance, stateDir, admin].some((each) => each !== undefined)
  const file = isNamed ? undefined : await findOwnConfig(io)
  if (file === undefined) return options
  io.stderr.write(`postern ${command}: the configuration is ${file}\n`)
  return { ...options, config: file, isOwn: true }
}
