import { elfNeeds } from './elf-needs.ts'

/** Debian's package of a library, and the first version of it that has a symbol version. */
interface Provider {
  readonly package: string
  readonly first: (symbols: string) => string | undefined
}

/** GCC's releases by the versions of the symbols that they brought: gcc.gnu.org/onlinedocs/libstdc++/manual/abi.html. */
const STDCXX: Readonly<Record<string, string>> = {
  'GLIBCXX_3.4.21': '5.1',
  'GLIBCXX_3.4.22': '6',
  'GLIBCXX_3.4.23': '7',
  'GLIBCXX_3.4.24': '7.2',
  'GLIBCXX_3.4.25': '8',
  'GLIBCXX_3.4.26': '9',
  'GLIBCXX_3.4.29': '11',
  'GLIBCXX_3.4.30': '12',
  'GLIBCXX_3.4.32': '13.2',
  'CXXABI_1.3.8': '4.9',
  'CXXABI_1.3.9': '5.1',
  'CXXABI_1.3.10': '6',
  'CXXABI_1.3.11': '7',
  'CXXABI_1.3.12': '9',
  'CXXABI_1.3.13': '11',
}

/** Every GCC that has a later version of the symbols of libstdc++ in the table has the earlier ones. */
const OLD_STDCXX = /^(?:GLIBCXX_3\.4(?:\.1?\d|\.20)?|CXXABI_1\.3(?:\.[1-7])?)$/

const LIBC: Provider = { package: 'libc6', first: (symbols) => /^GLIBC_([\d.]+)$/.exec(symbols)?.[1] }

const PROVIDERS: Readonly<Record<string, Provider>> = {
  'libc.so.6': LIBC,
  'libm.so.6': LIBC,
  'libdl.so.2': LIBC,
  'libpthread.so.0': LIBC,
  'ld-linux-x86-64.so.2': LIBC,
  'ld-linux-aarch64.so.1': LIBC,
  'libgcc_s.so.1': { package: 'libgcc-s1', first: (symbols) => /^GCC_([\d.]+)$/.exec(symbols)?.[1] },
  'libstdc++.so.6': {
    package: 'libstdc++6',
    first: (symbols) => (OLD_STDCXX.test(symbols) ? '4.9' : STDCXX[symbols]),
  },
  'libatomic.so.1': {
    package: 'libatomic1',
    first: (symbols) => (symbols === 'LIBATOMIC_1.0' ? '4.8' : undefined),
  },
}

/**
 * The packages whose libraries a program loads, in the form of `Depends`, each with the lowest version that has the symbols.
 * It does what `dpkg-shlibdeps` does, for programs of every processor. Throws for a library or a version that it does not know.
 */
export function dependenciesOf(program: Buffer): readonly string[] {
  const lowest = new Map<string, string>()
  for (const [library, versions] of elfNeeds(program)) {
    const provider = PROVIDERS[library]
    if (provider === undefined) throw new Error(`add the package of ${library} to the table of libraries`)
    for (const symbols of versions) {
      const first = provider.first(symbols)
      if (first === undefined)
        throw new Error(`add the version of ${provider.package} that has ${symbols} to the table`)
      const known = lowest.get(provider.package)
      if (known === undefined || newer(first, known)) lowest.set(provider.package, first)
    }
  }
  return [...lowest].map(([name, version]) => `${name} (>= ${version})`).sort()
}

function newer(a: string, b: string): boolean {
  return a.localeCompare(b, 'en', { numeric: true }) > 0
}
