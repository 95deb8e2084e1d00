import { secretFiles } from '../config/files.ts'
import type { ConfigWarning, WarningRule } from '../config/insecure-settings.ts'
import { passwordSources } from '../config/password-fields.ts'
import type { Config } from '../config/schema.ts'
import { readSource } from '../password/read-source.ts'
import type { Credential } from '../password/stored-line.ts'
import { cheapHash, hasOuterBlank, mistakenFor, weaknessOf } from '../password/strength.ts'
import { shellWord } from '../system/text.ts'

/** A password that clients or viewers log in with, as its file holds it. */
interface StoredPassword {
  readonly key: string
  readonly file: string
  /** Whose line it is, in an htpasswd or shadow file. */
  readonly user?: string
  readonly line: string
  readonly credential: Credential
  /** Postern also signs in to the device with this file, so it cannot hold a hash. */
  readonly isSent: boolean
}

interface PasswordRule extends WarningRule {
  readonly judge: (stored: StoredPassword) => Pick<ConfigWarning, 'reason' | 'meaning' | 'remedy'> | undefined
}

const NEW_PASSWORD = 'choose a longer one, which postern hash-password takes'

/** Rules for passwords that work and protect little. No text quotes a password. */
export const PASSWORD_RULES: readonly PasswordRule[] = [
  {
    about: 'a password file that holds plain text, unless Postern also signs in to the device with it',
    judge: (stored) =>
      stored.credential.kind !== 'plain' || stored.isSent
        ? undefined
        : {
            reason: 'it holds the password in plain text',
            meaning: 'a reader of the file, or of a backup of it, has the password',
            remedy: hashAnew(stored),
          },
  },
  {
    about: 'a password in plain text with fewer than 8 characters, or one of the usual ones',
    judge({ credential, line }) {
      const weakness = credential.kind === 'plain' ? weaknessOf(line) : undefined
      if (weakness === undefined) return undefined
      return {
        reason: `the password ${weakness}`,
        meaning: 'guessing the password takes minutes',
        remedy: NEW_PASSWORD,
      }
    },
  },
  {
    about:
      'a hash that is cheap to guess: SHA-1, MD5 (`$1$`, `$apr1$`), or another kind with a low cost; `postern hash-password` makes argon2id',
    judge(stored) {
      const kind = cheapHash(stored.credential)
      if (kind === undefined) return undefined
      return {
        reason: `it holds ${kind}`,
        meaning:
          'guessing it is cheap: a reader of the file, or of a backup of it, tries a million passwords a second and more',
        remedy: hashAnew(stored),
      }
    },
  },
  {
    about: 'a password in plain text that looks like a hash: it is taken as the password itself',
    judge(stored) {
      const like = stored.credential.kind === 'plain' ? mistakenFor(stored.line) : undefined
      if (like === undefined) return undefined
      return {
        reason: `it looks like ${like}, and is taken as the password itself`,
        meaning: 'clients have to send this text; the password that was hashed logs nobody in',
        remedy: hashAnew(stored),
        message: 'a password in plain text looks like a hash',
      }
    },
  },
  {
    about: 'a password in plain text with a blank at its beginning or end',
    judge({ credential, line, file }) {
      if (credential.kind !== 'plain' || !hasOuterBlank(line)) return undefined
      return {
        reason: 'the password begins or ends with a blank, which is part of it',
        meaning: 'clients that send it without the blank get invalid_grant',
        remedy: `remove the blank from ${file} if it is a slip`,
        message: 'a password begins or ends with a blank',
      }
    },
  },
]

/** What `PASSWORD_RULES` find. A file that cannot be read is no warning: the code that opens it reports it. */
export async function insecurePasswords(config: Config): Promise<readonly ConfigWarning[]> {
  const { admin } = config
  const page =
    admin.passwordFile === undefined ? [] : [{ key: 'admin.password_file', file: admin.passwordFile }]
  const sources = [...passwordSources(config), ...page]
  const sent = secretFiles(config).filter(({ key }) => key.startsWith('upstream.'))
  const looks = sources.map(async (source) => {
    const found = await readSource(source)
    if ('reason' in found || 'absent' in found) return []
    const isSent = sent.some(({ file }) => file === source.file)
    const stored = { ...source, ...found, isSent }
    return PASSWORD_RULES.flatMap(({ judge }) => judge(stored) ?? []).map((warning) => ({
      key: source.key,
      file: source.file,
      ...warning,
    }))
  })
  return (await Promise.all(looks)).flat()
}

function hashAnew({ key, file, user }: StoredPassword): string {
  if (user !== undefined) {
    return `write the line that postern hash-password prints to a file of its own, and name it in ${key.replace(/\.(?:htpasswd|shadow)\.file$/, '.file')}; it is argon2id`
  }
  const [path, next] = [shellWord(file), shellWord(`${file}.new`)]
  const who = key === 'admin.password_file' ? 'viewer' : 'client'
  return `cp -p ${path} ${next} && postern hash-password > ${next} && mv ${next} ${path}; then every ${who} has to log in again`
}
