import { readdirSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { codeOf, isWithheld, SetupError } from '../system/setup-error.ts'
import type { CommandIo } from './command.ts'
import { DEFAULT_CONFIG, DEFAULT_STATE } from './help.ts'

/** Where an installation keeps configuration and state; by default where packages put them. */
export type InstancePlaces = Pick<CommandIo, 'defaultConfig' | 'defaultState'>

/** One of several devices behind this host. `postern-device@NAME.service` runs its sidecar. */
export interface Instance {
  readonly name: string
  readonly config: string
  readonly stateDir: string
}

/**
 * A label of a host name (RFC 1123), in lower case: a file name, a systemd instance without escapes, and a value of a Prometheus label.
 * With 63 characters the path of the control socket fits into the 107 bytes that the kernel takes.
 */
const NAME = /^[a-z\d](?:[a-z\d-]{0,61}[a-z\d])?$/

/** The instance with a name, whether or not its file exists. Throws `SetupError` for an invalid name. */
export function instanceOf(name: string, places: InstancePlaces): Instance {
  if (!NAME.test(name)) {
    throw new SetupError('--instance: must be 1 to 63 of a-z, 0-9 and -, and neither begin nor end with -', {
      remedy: 'choose a name such as boiler or rack-3-pdu',
    })
  }
  return instanceNamed(name, places)
}

function instanceNamed(name: string, places: InstancePlaces): Instance {
  const { defaultState = DEFAULT_STATE } = places
  return {
    name,
    config: join(folderOf(places), `${name}.yaml`),
    stateDir: join(defaultState, 'devices', name),
  }
}

/** The folder with the configuration of each instance. */
export function folderOf({ defaultConfig = DEFAULT_CONFIG }: InstancePlaces): string {
  return join(dirname(defaultConfig), 'devices')
}

/** The instances that have a file, by name. None if the folder is missing. Throws `SetupError` if it cannot be read. */
export function readInstances(places: InstancePlaces): readonly Instance[] {
  const folder = folderOf(places)
  return filesIn(folder)
    .flatMap((file) => (file.endsWith('.yaml') ? [file.slice(0, -'.yaml'.length)] : []))
    .filter((name) => NAME.test(name))
    .sort()
    .map((name) => instanceNamed(name, places))
}

function filesIn(folder: string): readonly string[] {
  try {
    return readdirSync(folder)
  } catch (error) {
    const code = codeOf(error)
    if (code === 'ENOENT') return []
    if (code === '' && !isWithheld(error)) throw error
    throw new SetupError(`cannot read the folder ${folder} (${code})`, {
      remedy: "run the command as root or as the sidecar's user",
      cause: error,
    })
  }
}

/** The error for an instance without a file. It names the instances that have one. */
export function unknownInstance({ name, config }: Instance, places: InstancePlaces): SetupError {
  const names = readInstances(places).map((each) => each.name)
  const others = names.length === 0 ? 'there is none yet' : `the instances are ${names.join(', ')}`
  return new SetupError(`--instance: no ${config}; ${others}`, {
    remedy: `postern init --instance ${name} writes it`,
  })
}
