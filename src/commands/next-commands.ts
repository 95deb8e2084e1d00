import { existsSync } from 'node:fs'
import { join } from 'node:path'
import type { ProgramIo } from './command.ts'
import { type ConfigOptions, configPath, withFlags } from './configuration.ts'
import { OWN_CONFIG } from './help.ts'

/** The commands with which an operator goes on after `init` and `check`, as they are typed where the program was started. */
export interface NextCommands {
  readonly check: string
  readonly serve: string
  readonly try: string
}

/** Exists where systemd runs the services. The scripts of the package ask for it, too. */
const SYSTEMD = '/run/systemd/system'

type Place = Pick<ProgramIo, 'typed' | 'env' | 'folder' | 'defaultConfig' | 'defaultState' | 'systemd'>

/**
 * The configuration of a package or of an instance belongs to a service: systemd starts it, and the user of the service has to be able to read
 * all that `check` reads.
 */
export function nextCommands(options: ConfigOptions, io: Place): NextCommands {
  const { instance, config, ...others } = options
  const isShipped = instance === undefined && configPath(options, io) === io.defaultConfig
  // postern.yaml of the working directory comes before the file of the package.
  const isFound = isShipped && (io.folder === undefined || !existsSync(join(io.folder, OWN_CONFIG)))
  const command = (words: string): string => withFlags(io.typed, words, isFound ? others : options)
  const commands = { check: command('check'), serve: command('serve'), try: command('try /') }
  const isOfService = instance !== undefined || (isShipped && existsSync(io.systemd ?? SYSTEMD))
  // The service gets no --set.
  if (!isOfService || options.set.length > 0) return commands
  return {
    ...commands,
    check: `runuser -u postern -- ${commands.check}`,
    serve:
      instance === undefined
        ? 'systemctl start postern'
        : `systemctl enable --now postern-device@${instance}`,
  }
}
