import { readFile } from 'node:fs/promises'
import { parse } from 'yaml'
import { z } from 'zod'

/** Text that fits into a field of one line, in a Debian control file too. */
const line = z
  .string('write it as a text')
  .trim()
  .min(1, 'it is empty')
  .max(200, 'it has more than 200 characters')
  .regex(/^[^\p{C}\u2028\u2029]*$/u, 'it must be one line without control characters')

const address = line.regex(/^https:\/\/[^\s@]+$/, 'write an https: address without a password')

const SCHEMA = z.strictObject(
  {
    name: line,
    maintainer: line.regex(
      /^[^<>,"]+ <[^\s<>@,]+@[^\s<>@,]+>$/,
      'write it as in a mail: Ann Example <ann@example.com>',
    ),
    security_contact: line.regex(
      /^(https:\/\/\S+|[^\s<>@:]+@[^\s<>@:]+)$/,
      'write an https: address or a mail address',
    ),
    support_period: line,
    download: address,
    /** Where the source code is, if not where the releases are. */
    source: address.optional(),
  },
  'write name, maintainer, security_contact, support_period and download',
)

/** Who answers for a release. */
export type Vendor = Readonly<z.infer<typeof SCHEMA>>

/** Stands in place of the vendor's name in a release without `--vendor`. */
export const NOBODY = 'built from a checkout by whoever ran it'

/** Reads the file of `--vendor`, YAML or JSON. Throws an error that names the file and each key that is wrong. */
export async function readVendor(file: string): Promise<Vendor> {
  const text = await readFile(file, 'utf8').catch((error: NodeJS.ErrnoException) => {
    throw new Error(`cannot read the vendor file ${file}: ${error.code}`)
  })
  const { data, error } = SCHEMA.safeParse(contentOf(file, text))
  if (data !== undefined) return data
  const faults = error.issues.map(({ code, path, message, ...rest }) => {
    if (code === 'unrecognized_keys') return `unknown key: ${(rest as { keys: string[] }).keys.join(', ')}`
    return path.length === 0 ? message : `${path.join('.')}: ${message}`
  })
  throw new Error(`the vendor file ${file}:\n  ${faults.join('\n  ')}`)
}

function contentOf(file: string, text: string): unknown {
  try {
    return parse(text)
  } catch (error) {
    throw new Error(`the vendor file ${file} is neither YAML nor JSON: ${(error as Error).message}`)
  }
}

/** The file `VENDOR` of a release. */
export function vendorText(vendor: Vendor | undefined): string {
  if (vendor === undefined) {
    return `vendor: ${NOBODY}
# Nobody answers for this release but who made it: ask there for support, and report weaknesses there.
# To put a name and a contact here: npm run release -- --vendor FILE, see docs/releasing.md.
`
  }
  return `vendor: ${vendor.name}
maintainer: ${vendor.maintainer}
security contact: ${vendor.security_contact}
support: ${vendor.support_period}
download: ${vendor.download}
${vendor.source === undefined ? '' : `source: ${vendor.source}\n`}`
}
