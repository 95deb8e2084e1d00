import { randomBytes } from 'node:crypto'
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

export interface DemoSettings {
  readonly upstream: string
  readonly port: number
  readonly adminPort: number
  readonly passwordHash: string
}

/** The folder with all files of the demo. Only its owner can read it. */
export interface DemoFolder {
  readonly path: string
  readonly configFile: string
  readonly certificate: string
  readonly remove: () => Promise<void>
}

/** Creates the folder with a configuration file and a password file. Removes it again on failure. */
export async function makeDemoFolder(settings: DemoSettings): Promise<DemoFolder> {
  // mkdtemp creates it with mode 0700: no other user can read it or plant a symbolic link in it.
  const path = await mkdtemp(join(tmpdir(), 'postern-demo-'))
  const remove = (): Promise<void> => rm(path, { recursive: true, force: true })
  const stateDir = join(path, 'state')
  const configFile = join(path, 'postern.yaml')
  const passwordFile = join(path, 'password')
  try {
    await mkdir(stateDir, { mode: 0o700 })
    await writeFile(passwordFile, `${settings.passwordHash}\n`, { mode: 0o600, flag: 'wx' })
    const config = demoConfig(settings, { passwordFile, stateDir })
    await writeFile(configFile, config, { mode: 0o600, flag: 'wx' })
  } catch (error) {
    await remove()
    throw error
  }
  return { path, configFile, certificate: join(stateDir, 'tls', 'cert.pem'), remove }
}

function demoConfig(settings: DemoSettings, paths: { passwordFile: string; stateDir: string }): string {
  // A JSON string is also a YAML double-quoted string, so any path is quoted correctly.
  // Without access lines: they would bury the commands that the demo asks to copy.
  return `# Written by "postern demo". All other keys have their defaults.
listen:
  address: 127.0.0.1:${settings.port}
admin:
  address: 127.0.0.1:${settings.adminPort}
upstream:
  url: ${settings.upstream}
password:
  file: ${JSON.stringify(paths.passwordFile)}
state_dir: ${JSON.stringify(paths.stateDir)}
realm: demo
log: {access: false}
`
}

const typeable = '0123456789abcdefghjkmnpqrstvwxyz'

/** A password of 75 random bits in Crockford's base 32, which has no two characters that look alike. */
export function generatePassword(random: (size: number) => Uint8Array = randomBytes): string {
  const letters = Array.from(random(15), (byte) => typeable[byte % typeable.length] ?? '0')
  return [letters.slice(0, 5), letters.slice(5, 10), letters.slice(10)].map((part) => part.join('')).join('-')
}
