import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { needs, run } from '../support/tools.ts'

const CONTROL = join(import.meta.dirname, '../../deploy/debian/control')

/** Debian's package of each library. */
const PACKAGES: Readonly<Record<string, string>> = {
  'ld-linux-aarch64.so.1': 'libc6',
  'ld-linux-x86-64.so.2': 'libc6',
  'libatomic.so.1': 'libatomic1',
  'libc.so.6': 'libc6',
  'libdl.so.2': 'libc6',
  'libgcc_s.so.1': 'libgcc-s1',
  'libm.so.6': 'libc6',
  'libpthread.so.0': 'libc6',
  'libstdc++.so.6': 'libstdc++6',
}

/**
 * The newest version of each family of symbols that a version of a package has. GCC counts those of libstdc++ apart:
 * gcc.gnu.org/onlinedocs/libstdc++/manual/abi.html.
 */
const SYMBOLS: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  'libatomic1 (>= 4.8)': { LIBATOMIC: '1.0' },
  'libc6 (>= 2.28)': { GLIBC: '2.28' },
  'libgcc-s1 (>= 4.2.0)': { GCC: '4.2.0' },
  'libstdc++6 (>= 7)': { GLIBCXX: '3.4.23', CXXABI: '1.3.11' },
}

/** What a program needs of its libraries that the packages in `Depends` of `deploy/debian/control` may not have. */
export async function missingInDepends(program: string): Promise<readonly string[]> {
  needs('readelf')
  const [, depends = ''] = /^Depends: (.*)$/m.exec(readFileSync(CONTROL, 'utf8')) ?? []
  const packages = depends.split(', ')
  const { stdout } = await run('readelf', ['--version-info', '--wide', program])
  const [, needed = ''] = stdout.split('.gnu.version_r')
  return needed
    .split('File: ')
    .slice(1)
    .flatMap((text) => {
      const [library = ''] = text.split(' ')
      const provider = packages.find((each) => each.startsWith(`${PACKAGES[library]} (`)) ?? ''
      const symbols = [...text.matchAll(/Name: (\w+?)_([\d.]+) /g)]
      if (symbols.length === 0) throw new Error(`readelf names no version of ${library}`)
      return symbols
        .filter(([, family = '', version = '']) => isNewer(version, SYMBOLS[provider]?.[family] ?? '0'))
        .map(([, family, version]) => `${library} ${family}_${version}`)
    })
}

function isNewer(version: string, than: string): boolean {
  return version.localeCompare(than, 'en', { numeric: true }) > 0
}
