import { resolve, sep } from 'node:path'
import { parseArgs } from 'node:util'

export interface ReleaseOptions {
  readonly folder: string
  readonly sign?: string | undefined
  readonly vendor?: string | undefined
  readonly apt?: string | undefined
  readonly gpg?: string | undefined
}

export const HELP = `Usage: npm run release -- [options] [FOLDER]

Makes in FOLDER (default: dist) what is published. Removes what was in it.

  --sign KEY     signs SHA256SUMS with ssh-keygen: a private key, or a public
                 key whose private one is in the SSH agent
  --vendor FILE  says in YAML or JSON who answers for the release: name,
                 maintainer, security_contact, support_period, download,
                 and optionally source
  --apt DIR      adds the Debian packages to a repository for apt; takes --gpg
  --gpg KEY      the key of gpg that signs the repository
  --help         prints this

docs/releasing.md tells more.
`

/** Reads the command line of a release. Paths are relative to `cwd`. Returns undefined if the help is asked for. */
export function releaseOptions(
  args: readonly string[],
  dist: string,
  cwd: string,
): ReleaseOptions | undefined {
  const text = { type: 'string' } as const
  const { values, positionals } = parseArgs({
    args: [...args],
    options: {
      sign: text,
      vendor: text,
      apt: text,
      gpg: text,
      help: { type: 'boolean' },
    },
    allowPositionals: true,
  })
  if (values.help) return undefined
  const { sign, vendor, apt, gpg } = values
  for (const [name, value] of Object.entries({ sign, vendor, apt, gpg }))
    if (value === '') throw new Error(`--${name} is empty`)
  if (positionals.length > 1) throw new Error(`one folder is enough: ${positionals.join(' ')}`)
  if (apt !== undefined && gpg === undefined)
    throw new Error('--apt takes --gpg KEY: apt refuses an unsigned repository')
  if (gpg !== undefined && apt === undefined) throw new Error('--gpg signs a repository: add --apt DIR')
  const folder = positionals[0] === undefined ? dist : resolve(cwd, positionals[0])
  const path = (file: string | undefined) => (file === undefined ? undefined : resolve(cwd, file))
  const repository = path(apt)
  if (repository !== undefined && `${repository}${sep}`.startsWith(`${folder}${sep}`))
    throw new Error(`--apt ${apt} is in ${folder}, which every release empties: name another folder`)
  for (const file of [path(sign), path(vendor)])
    if (file?.startsWith(`${folder}${sep}`))
      throw new Error(`${file} is in ${folder}, which the release empties`)
  return {
    folder,
    sign: path(sign),
    vendor: path(vendor),
    apt: repository,
    gpg,
  }
}
