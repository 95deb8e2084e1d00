/**
 * Lines of real tools on Debian 12: openssl 3.0.19, mkpasswd 5.5.17 (libxcrypt 4.4), htpasswd 2.4.71,
 * argon2 0~20171227, and Python 3.11.7's `hashlib.scrypt`. The passwords have what implementations get wrong:
 * bytes outside of ASCII, and a length that is a multiple of every digest length.
 */
export const PASSWORDS: { readonly unicode: string; readonly block: string } = {
  unicode: 'Tür & Tor 7€',
  block: 'a'.repeat(64),
}

type Vector = readonly [tool: string, password: keyof typeof PASSWORDS, line: string]

export const VECTORS: readonly Vector[] = [
  ['openssl passwd -1', 'unicode', '$1$Kfxa8Mii$t/aRGftypmDjuK.osq.66.'],
  ['openssl passwd -apr1', 'unicode', '$apr1$vlMOD3zs$RXVGPawZjBbhJsNsH.Ou3.'],
  ['openssl passwd -5', 'unicode', '$5$xCl8Z.L0KIVY4.CP$opS3APopqMaIMxe8ODCmR63auSMkAxw.2VmLoGkxWE0'],
  [
    'openssl passwd -6',
    'unicode',
    '$6$dp48gnPodYS3HPSb$KDuwPab2tbtL0L2iaCu/Si9ofeKvGzyOrZye219xIrA5G8kCccyaONvUPgB4YFkuStpNK83N5R1rv6.GnReK21',
  ],
  ['mkpasswd -m md5crypt', 'unicode', '$1$OURCrkGd$qd2pKy5GQnHgxizZb0MOX1'],
  [
    'mkpasswd -m sha256crypt -R 1234',
    'unicode',
    '$5$rounds=1234$SyLGqNr.wWjEAaYz$3t/VfiLDrC7I5xsSWqAQpnkQJJAj.WzMJYgQjJ/Js9B',
  ],
  [
    'mkpasswd -m sha512crypt -R 20000',
    'unicode',
    '$6$rounds=20000$c1oVdf4VLYDrWAN4$9JBrlXitZZqhHezgPk/z9/jAOu2JbsjfusS4hH6Op3Jo/0hoPCcPEagFj8YBp8/18k00VCH4zVGBc4azwVyJj1',
  ],
  ['mkpasswd -m bcrypt -R 6', 'unicode', '$2b$06$B2fXVc0YRPuTV3k7nGiJ1uhLT73wLC68oqon.kWphmFcjqSg25kP6'],
  ['mkpasswd -m bcrypt-a -R 5', 'unicode', '$2a$05$tJiXZrrRBB6PJDplUT0i8uwWDbwnqMvCEzAOFjvvsWeStYc8S7wBC'],
  ['htpasswd -nb -B', 'unicode', '$2y$05$tKDyH4zrGtk3w1TnvNJpP.TJMiayxbAx/hT2x09mSmiqJUqaIvZsi'],
  ['htpasswd -nb -m', 'unicode', '$apr1$wA2tsrQT$JJXnd8NtdKPS.GXhOHlhw.'],
  ['htpasswd -nb -s', 'unicode', '{SHA}wvihm7nzZ82rwQUf5xBUBdd2OM0='],
  ['htpasswd -nb -2', 'unicode', '$5$SAiy.SXQw.bz4Ytl$OmzXlmT7UV6hKwrVRwKeKAcMhr8VuXkom3w0CP4OTb7'],
  [
    'htpasswd -nb -5',
    'unicode',
    '$6$4fdK1jvoR9hvdzse$Jlbh4PZ7.Md7mlSJDX6TIZun7HWGKUpptdtf/ETyDpjVSyt52Qvjru4cN7xuH1w1dSXQgI61AP4KZw3nVnotH0',
  ],
  [
    'argon2 -id -k 19456 -t 2 -p 1 -l 32',
    'unicode',
    '$argon2id$v=19$m=19456,t=2,p=1$c2FsdHNhbHRzYWx0c2FsdA$H+ZZCA/b7l8Eyyvb9Ifw/xxSHfcK/TqYE6BXqTnkaVk',
  ],
  [
    'argon2 -id -m 10 -t 3 -p 4 -l 24',
    'unicode',
    '$argon2id$v=19$m=1024,t=3,p=4$b3RoZXJzYWx0$mIDTJVGWLPLkm83UW+N/ICz6zDx/u00e',
  ],
  [
    'hashlib.scrypt',
    'unicode',
    '$scrypt$ln=14,r=8,p=1$c2l4dGVlbiBzYWx0IGJ5dA$WWDrP8lBpx1789YoWgcfVhA7Bjn6Tt5qF9Q2p/HWLbU',
  ],
  [
    'hashlib.scrypt',
    'unicode',
    '$scrypt$ln=10,r=4,p=3$c2l4dGVlbiBzYWx0IGJ5dA$GeU3Qi2HwZ6RZBL3/Kf8oBN93DI5NHCXLTHl3tZDf+E',
  ],
  ['openssl passwd -1', 'block', '$1$OaS8Jl07$QI5DQwE6BStOtuV/XicS40'],
  ['openssl passwd -apr1', 'block', '$apr1$V6VLY.m9$IDw5FPNuJ0LNQ2EsQ39in.'],
  ['openssl passwd -5', 'block', '$5$E/5RvjpidbYF5EF/$mkjnGF/YOdouHqALOXE34Hebc24kRUlQRHwTbP1hWH5'],
  [
    'openssl passwd -6',
    'block',
    '$6$TDeKcosk2f4tEXFM$9AA8r9a2dushS/XG87OJPm5mx465UDrVjrTfPrJtRy0BwYuTKZvjQDDFM1ig/ccVoh05kWbseeaikx8qTyfiQ.',
  ],
  ['mkpasswd -m md5crypt', 'block', '$1$0Yz0A9tV$EMZZVuR8NofjgQf2NRs.R/'],
  [
    'mkpasswd -m sha256crypt -R 1234',
    'block',
    '$5$rounds=1234$tOSIfWd7IyErojQZ$M1magTglP5ajy172iBDhEK1k6lkuYILEobEju/twx67',
  ],
  [
    'mkpasswd -m sha512crypt -R 20000',
    'block',
    '$6$rounds=20000$La945pOzl.o6E48i$nSqwlSccDnBl8VL5kcsZt4rYvotLaI7qtJkfFsVWqdNHf8TpzIlPtYZXxNg1dGmqYppc.yI0Y80F0kj4ESKRc.',
  ],
  ['mkpasswd -m bcrypt -R 6', 'block', '$2b$06$Ldz0lnUE37.EoTRcMv4RM.wFuKJNfSCR9gYCGsNSBuZBdbAv3nqTi'],
  ['mkpasswd -m bcrypt-a -R 5', 'block', '$2a$05$YpjwOu6tEirfbmGtdA00s.ivDMsbz/BFrqphFp3GkCOMYbQtT0UT.'],
  ['htpasswd -nb -B', 'block', '$2y$05$ouRVHAED/b81AzEhmqZFEeM44hDz4vUxOJJMwxQegAmjyA5AYiiuq'],
  ['htpasswd -nb -m', 'block', '$apr1$nuNhyM1t$PmGz3JXKtSADYH4i.AF7O/'],
  ['htpasswd -nb -s', 'block', '{SHA}AJi6gktcFkJ716ESKlpEKiXsZE0='],
  ['htpasswd -nb -2', 'block', '$5$kQyNWEGL5GjTBOrw$UY63GvAKHcwn4CXege1QUewaS95XgsOCLexB1b.r9PB'],
  [
    'htpasswd -nb -5',
    'block',
    '$6$nLgIdtUtvbhoKsID$HaxzF/emFdevbZz2Th8HTEQ8jkldqXkJbwCgovNZWL6WeDVKXTjMslsTzbVV8VdtRgJBwMqk.Sl5punnEoE.K1',
  ],
  [
    'argon2 -id -k 19456 -t 2 -p 1 -l 32',
    'block',
    '$argon2id$v=19$m=19456,t=2,p=1$c2FsdHNhbHRzYWx0c2FsdA$EnCuNp1JzQg+FQDmWdNOeV68WGopB0UyFOx6nwJ5BNQ',
  ],
  [
    'argon2 -id -m 10 -t 3 -p 4 -l 24',
    'block',
    '$argon2id$v=19$m=1024,t=3,p=4$b3RoZXJzYWx0$KXGEIv6EEk6uvUS8NaIw8TFZRWA/3aaD',
  ],
  [
    'hashlib.scrypt',
    'block',
    '$scrypt$ln=14,r=8,p=1$c2l4dGVlbiBzYWx0IGJ5dA$K2vqg/c1HdkDsV3Doqm3VvVf3JD7ZdLHmeD2u2PxnRk',
  ],
  [
    'hashlib.scrypt',
    'block',
    '$scrypt$ln=10,r=4,p=3$c2l4dGVlbiBzYWx0IGJ5dA$7eP4XnxeTk+h3L4pErhGfIyzCzwuBNi2DLPw+bnf8Uc',
  ],
]

/** Hashes of existing kinds that Postern cannot verify. */
export const UNSUPPORTED: readonly string[] = [
  '$y$j9T$bOEqb02pv7GRgMVd9tiZz1$4rVfJvMLdbJH7C.lqQqcN7tW54Doz70wsSPU9oP9S0A',
  '$gy$j9T$exmLxoeOQThhNV7CMdOaK0$f6xDDymEPOjp7PpJsCblaX/UpzHO5MKYoHkvgULnkS1',
  '$7$CU..../....iPlAXSLVWppHTNi6gYGKr1$kzjjsBXv6s/tnXbQgY5nipBuQQY7O4ENrPqbYFNb1nB',
  '$md5,rounds=90033$bSdn.eVE$$sCJJ6fJx29vrL79VclrLH0',
  '$argon2i$v=19$m=1024,t=3,p=4$b3RoZXJzYWx0$H+m6PWB8bREMkqp1xPI6pnnvTRPFzu/V',
  '{SSHA}wvihm7nzZ82rwQUf5xBUBdd2OM0=',
]
