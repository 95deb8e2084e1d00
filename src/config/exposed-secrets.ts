import { stat } from 'node:fs/promises'
import type { PasswordFile } from './auth-fields.ts'
import type { Config } from './schema.ts'
import { type ServiceConfig, servicesOf } from './upstream-fields.ts'

/** A file with a secret whose mode lets others than its owner and its group read it, or others than its owner write it. */
export interface ExposedSecret {
  /** Where the configuration names it. */
  readonly key: string
  readonly file: string
  readonly reason: string
}

type SecretFile = Pick<ExposedSecret, 'key' | 'file'>

/**
 * Finds the exposed ones among the files with secrets that the configuration names. A group that can read is normal
 * (root:postern, 0640). The owner is not checked: a user namespace shows another one than the real one. A file whose mode
 * cannot be read is left out: the code that reads the file reports it.
 */
export async function exposedSecrets(config: Config): Promise<readonly ExposedSecret[]> {
  const looks = secretFiles(config).map(async (secret) => {
    const found = await stat(secret.file).catch(() => undefined)
    const reason = found === undefined ? '' : reasonOf(found.mode)
    return reason === '' ? [] : [{ ...secret, reason }]
  })
  return (await Promise.all(looks)).flat()
}

const EXPOSURES: readonly (readonly [bit: number, reason: string])[] = [
  [0o004, 'others can read it'],
  [0o002, 'others can write it'],
  [0o020, 'its group can write it'],
]

function reasonOf(mode: number): string {
  const reasons = EXPOSURES.filter(([bit]) => (mode & bit) !== 0).map(([, reason]) => reason)
  return reasons.length === 0 ? '' : `${reasons.join(', ')}; chmod 0640 is enough`
}

function secretFiles({ password, listen, upstream }: Config): readonly SecretFile[] {
  const files: SecretFile[] = []
  if ('file' in password) files.push({ key: 'password.file', file: password.file })
  if ('htpasswd' in password) files.push({ key: 'password.htpasswd.file', file: password.htpasswd.file })
  if ('shadow' in password) files.push({ key: 'password.shadow.file', file: password.shadow.file })
  if (typeof listen.tls !== 'string') files.push({ key: 'listen.tls.key', file: listen.tls.key })
  return files.concat(servicesOf(upstream).flatMap(({ path, service }) => ofService(path.join('.'), service)))
}

function ofService(above: string, { headers, auth }: ServiceConfig): SecretFile[] {
  const files: SecretFile[] = []
  for (const [name, value] of Object.entries(headers)) {
    if (typeof value !== 'string') files.push({ key: `${above}.headers.${name}.file`, file: value.file })
  }
  if (auth === 'off') return files
  for (const [kind, { password }] of Object.entries<{ readonly password?: PasswordFile }>(auth)) {
    if (password !== undefined) {
      files.push({ key: `${above}.auth.${kind}.password.file`, file: password.file })
    }
  }
  return files
}
