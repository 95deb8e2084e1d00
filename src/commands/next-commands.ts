import { existsSync } from 'node:fs'
import type { ProgramIo } from './command.ts'
import { type ConfigOptions, configPath, withFlags } from './configuration.ts'

/** The commands with which an operator goes on after `init` and `check`, as they are typed where the program was started. */
export interface NextCommands {
  readonly check: string
  readonly serve: string
  readonly try: string
}

/** Exists where systemd runs the services. The scripts of the package ask for it, too. */
const SYSTEMD = '/run/systemd/system'

type Place = Pick<ProgramIo, 'typed' | 'env' | 'defaultConfig' | 'defaultState' | 'systemd'>

/**
 * The configuration of a package or of an instance belongs to a service: systemd starts it, and the user of the service has to be able to read
 * all that `check` reads.
 */
export function nextCommands(options: ConfigOptions, io: Place): NextCommands {
  const { instance, config, ...others } = options
  const isShipped = instance === undefined && configPath(options, io) === io.defaultConfig
  const command = (words: string): string => withFlags(io.typed, words, isShipped ? others : options)
  const commands = { check: command('check'), serve: command('serve'), try: command('try /') }
  const isService =
    instance !== undefined || (isShipped && options.set.length === 0 && existsSync(io.systemd ?? SYSTEMD))
  if (!isService) return commands
  return {
    ...commands,
    check: `runuser -u postern -- ${commands.check}`,
    serve:
      instance === undefined
        ? 'systemctl start postern'
        : `systemctl enable --now postern-device@${instance}`,
  }
}
