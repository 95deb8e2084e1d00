import { cpSync, mkdirSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Machine } from './machine.ts'
import { executableFor, PROCESSOR } from './made-once.ts'

const REPOSITORY = join(import.meta.dirname, '..', '..')

export const PASSWORD = 'correct horse battery staple'

/** A page's command for the libraries that a minimal Debian lacks. Machines have no network, so apt's files come along. */
export const LIBRARIES = 'apt-get install -y libatomic1 libstdc++6'

/** Adds to the home of root what the commands of docs/installing.md find in a checkout with a release. */
export async function addCheckout(root: string): Promise<void> {
  const checkout = join(root, 'root')
  cpSync(join(REPOSITORY, 'deploy'), join(checkout, 'deploy'), { recursive: true })
  mkdirSync(join(checkout, 'dist'))
  cpSync(await executableFor(), join(checkout, 'dist', `postern-linux-${PROCESSOR}`))
}

/** Adds a device behind a socket of systemd, and an `editor` that writes its address into the shipped configuration. */
export function addDevice(root: string): void {
  const units = join(root, 'etc/systemd/system')
  writeFileSync(join(units, 'device.socket'), '[Socket]\nListenStream=127.0.0.1:8080\nAccept=yes\n')
  mkdirSync(join(units, 'sockets.target.wants'), { recursive: true })
  symlinkSync('../device.socket', join(units, 'sockets.target.wants/device.socket'))
  writeFileSync(
    join(units, 'device@.service'),
    '[Service]\nStandardInput=socket\nExecStart=/usr/local/bin/device\n',
  )
  const programs = join(root, 'usr/local/bin')
  const device = `#!/bin/sh
while read -r line && [ "$line" != "$(printf '\\r')" ]; do :; done
printf 'HTTP/1.1 200 OK\\r\\nContent-Length: 7\\r\\nConnection: close\\r\\n\\r\\ndevice\\n'
`
  writeFileSync(join(programs, 'device'), device, { mode: 0o755 })
  const editor = `#!/bin/sh\nexec sed -i 's|http://192.0.2.10:80$|http://127.0.0.1:8080|' "$1"\n`
  writeFileSync(join(programs, 'editor'), editor, { mode: 0o755 })
}

/** An operator and a client in one: a shell of root in the machine. */
export interface Operator {
  /** Runs commands and returns what they print. Each command must succeed, except for those that a pipe reads. */
  readonly type: (commands: string, input?: string) => Promise<string>
  /** Requests the device with a token, and returns body and status. Retries until the sidecar listens. */
  readonly ask: (token: string, port?: number) => Promise<string>
  /** Logs in and returns the access token. */
  readonly logIn: (password?: string) => Promise<string>
}

export function operatorOf(machine: Machine): Operator {
  async function type(commands: string, input?: string): Promise<string> {
    const { code, stdout, stderr } = await machine.run(`set -e\n${commands}`, input)
    if (code !== 0) throw new Error(`${commands}\nended with ${code}\n${stdout}${stderr}`)
    return stdout
  }
  const curl = (args: string, input: string): Promise<string> => {
    const retries = '--retry 20 --retry-delay 1 --retry-connrefused'
    return type(`curl -sS ${retries} --cacert /var/lib/postern/tls/cert.pem ${args}`, input)
  }
  return {
    type,
    ask: (token, port = 8443) =>
      curl(`-w '%{http_code}' https://localhost:${port}/ -H @-`, `Authorization: Bearer ${token}\n`),
    async logIn(password = PASSWORD) {
      const form = '-d grant_type=password --data-urlencode password@-'
      return JSON.parse(await curl(`-f https://localhost:8443/oauth/token ${form}`, password)).access_token
    },
  }
}
