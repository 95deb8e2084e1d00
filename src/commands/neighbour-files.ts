import { existsSync, realpathSync, statSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { loadConfig, readConfigFile } from '../config/load.ts'
import type { Config } from '../config/schema.ts'
import { isMapping, parseYaml, type YamlValue } from '../config/yaml.ts'
import { isIPv6, normalizeAddress } from '../http/ip.ts'
import type { ListenAddress } from '../system/listen-address.ts'
import { SetupError } from '../system/setup-error.ts'
import { DEFAULT_CONFIG } from './help.ts'
import { folderOf, type InstancePlaces, readInstances } from './instance.ts'

/** An address of a sidecar, and the key that sets it. */
interface OwnAddress {
  readonly key: 'listen.address' | 'listen.redirect' | 'admin.address'
  readonly address: ListenAddress
}

/** The configuration of another sidecar of this host. */
export interface Neighbour {
  readonly file: string
  /** Undefined if the file cannot be read or has a mistake in them. */
  readonly addresses: readonly OwnAddress[] | undefined
}

/** The device in the configuration of the packages: a documentation address (RFC 5737). A sidecar with it has not been set up yet. */
const EXAMPLE_DEVICE = 'http://192.0.2.10'

/**
 * Whether a file is the configuration of a sidecar of this host: `postern.yaml`, or a file in `devices/`. Any other file may be a draft of
 * one of these, so it is not compared with them.
 */
export function isInstalled(file: string, places: InstancePlaces): boolean {
  const { defaultConfig = DEFAULT_CONFIG } = places
  const own = realPath(file)
  return own === realPath(defaultConfig) || dirname(own) === realPath(folderOf(places))
}

/**
 * The other sidecars of this host by their files: the files in `devices/`, and `postern.yaml` if it names a device. All sidecars if `file`
 * is undefined. Throws `SetupError` if the folder cannot be read.
 */
export function neighboursOf(file: string | undefined, places: InstancePlaces): readonly Neighbour[] {
  const { defaultConfig = DEFAULT_CONFIG } = places
  const all = [defaultConfig, ...readInstances(places).map(({ config }) => config)]
  // A link in `devices/` to the file of another sidecar is a sidecar of its own.
  const own =
    file === undefined
      ? undefined
      : (all.find((each) => placeOf(each) === placeOf(file)) ??
        all.find((each) => realPath(each) === realPath(file)))
  return all.filter((each) => each !== own && existsSync(each)).flatMap(neighbourIn)
}

/** The path of a file itself, with links in its folders resolved: if the file is a link, not the path of its target. */
function placeOf(file: string): string {
  return join(realPath(dirname(file)), basename(file))
}

function realPath(path: string): string {
  try {
    return realpathSync(path)
  } catch {
    return path
  }
}

function neighbourIn(file: string): readonly Neighbour[] {
  // A pipe would wait for its writer.
  if (!statSync(file).isFile()) return [{ file, addresses: undefined }]
  let text: string
  try {
    text = readConfigFile(file).text
  } catch (error) {
    if (!(error instanceof SetupError)) throw error
    return [{ file, addresses: undefined }]
  }
  const config = configIn(text)
  if (config === undefined) return [{ file, addresses: undefined }]
  const isExample = config.upstream.url.origin === EXAMPLE_DEVICE
  return isExample ? [] : [{ file, addresses: addressesOf(config) }]
}

/** The configuration of a text. If other keys have mistakes, a configuration with only its addresses. */
function configIn(text: string): Config | undefined {
  const parsed = parseYaml(text)
  if ('problem' in parsed) return undefined
  const whole = { object: parsed.value }
  const part = {
    object: {
      upstream: { url: 'http://127.0.0.1:1' },
      password: { file: 'none' },
      listen: addressIn(parsed.value, 'listen'),
      admin: addressIn(parsed.value, 'admin'),
    },
  }
  for (const sources of [whole, part]) {
    try {
      return loadConfig(sources)
    } catch (error) {
      if (!(error instanceof SetupError)) throw error
    }
  }
  return undefined
}

function addressIn(tree: YamlValue, section: string): YamlValue {
  const found = isMapping(tree) ? tree[section] : undefined
  const entries = ['address', 'redirect'].map((key) => [key, isMapping(found) ? found[key] : undefined])
  return Object.fromEntries(entries.filter(([, value]) => value !== undefined))
}

export function addressesOf({ listen, admin }: Pick<Config, 'listen' | 'admin'>): readonly OwnAddress[] {
  const own: OwnAddress[] = [{ key: 'listen.address', address: listen.address }]
  if (listen.redirect !== 'off') own.push({ key: 'listen.redirect', address: listen.redirect })
  if (admin.address !== 'off') own.push({ key: 'admin.address', address: admin.address })
  return own
}

/**
 * Whether only one of two sidecars can listen. A wildcard takes the port on every address of its kind, and `::` on the addresses of both
 * kinds. A name may be any address. A descriptor belongs to one process, so it never collides.
 */
export function collide(one: ListenAddress, other: ListenAddress): boolean {
  if (one.kind === 'unix' && other.kind === 'unix') return one.path === other.path
  if (one.kind !== 'tcp' || other.kind !== 'tcp') return false
  if (one.port !== other.port || one.port === 0) return false
  const [left, right] = [normalizeAddress(one.host), normalizeAddress(other.host)]
  if (left === undefined || right === undefined || left === right) return true
  const hosts = [left, right]
  if (hosts.includes('::')) return true
  return hosts.includes('0.0.0.0') && !hosts.some(isIPv6)
}
