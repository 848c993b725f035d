//! Tokens that begin with a word of their own, by who issues them. Their issuers' documentation shows each.

/// Bytes that tokens are made of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Class {
    /// Hex digits in lower case: `0-9 a-f`
    Hex,
    /// Upper case and digits: `A-Z 0-9`
    Upper,
    /// Letters and digits of ASCII: `A-Z a-z 0-9`
    Alnum,
    /// As `Alnum`, and `_`
    Word,
    /// As `Word`, and `-`: base64 for URLs
    Dashed,
    /// As `Dashed`, and `.`
    Dotted,
    /// As `Dashed`, and `$`
    Dollar,
    /// `A-Z a-z 0-9 _ - =`
    Base64Url,
    /// The rest of a path and its query.
    Path,
    /// `A-Z a-z 0-9 + / =`
    Base64,
    /// `A-Z a-z 0-9 - . _ ~ + / =`: credentials of HTTP (RFC 9110, token68)
    Token68,
    /// What a shell takes for one word of an assignment.
    Value,
    /// As `Value`, and every byte that is not ASCII.
    Secret,
    /// What stands in one line and in no quotes.
    Line,
}

impl Class {
    pub(super) const fn has(self, b: u8) -> bool {
        match self {
            Self::Hex => b.is_ascii_digit() || matches!(b, b'a'..=b'f'),
            Self::Upper => b.is_ascii_uppercase() || b.is_ascii_digit(),
            Self::Alnum => b.is_ascii_alphanumeric(),
            Self::Word => b.is_ascii_alphanumeric() || b == b'_',
            Self::Dashed => b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-'),
            Self::Dotted => b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-' | b'.'),
            Self::Dollar => Self::Dashed.has(b) || b == b'$',
            Self::Base64Url => Self::Dashed.has(b) || b == b'=',
            Self::Path => Self::Dotted.has(b) || matches!(b, b'/' | b'@' | b'%' | b'?' | b'='),
            Self::Base64 => b.is_ascii_alphanumeric() || matches!(b, b'+' | b'/' | b'='),
            Self::Token68 => b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-' | b'.' | b'~' | b'+' | b'/' | b'='),
            Self::Line => (b.is_ascii_graphic() || b == b' ') && !matches!(b, b'"' | b'\'' | b'`' | b'\\'),
            Self::Secret => !b.is_ascii() || Self::Value.has(b),
            Self::Value => {
                b.is_ascii_graphic()
                    && !matches!(b, b'"' | b'\'' | b'`' | b';' | b'&' | b'|' | b'<' | b'>' | b'(' | b')' | b'\\' | b',')
            }
        }
    }

    /// How many bytes at the beginning belong to it.
    pub(super) fn run(self, bytes: &[u8]) -> usize {
        bytes.iter().position(|b| !self.has(*b)).unwrap_or(bytes.len())
    }
}

/// A token that begins with a word of its own.
#[derive(Clone, Copy)]
pub(super) struct TokenShape {
    pub(super) prefix: &'static [u8],
    /// The fewest bytes of `of` that must follow the prefix.
    pub(super) least: usize,
    pub(super) of: Class,
    /// After the prefix, every byte of this class is hidden.
    pub(super) hidden: Class,
    /// The prefix must begin a word; inside of one it means nothing.
    pub(super) is_word: bool,
    /// Exactly `least` bytes follow: a longer word is something else.
    pub(super) is_exact: bool,
}

impl TokenShape {
    /// Longer tokens count as well: `least` is a minimum.
    const fn open(mut self) -> Self {
        self.is_exact = false;
        self
    }

    /// What follows after a dash belongs to it.
    const fn dashed(mut self) -> Self {
        self.hidden = Class::Dashed;
        self
    }
}

// The prefix counts within a word, too. At least `least` bytes follow, and there may be any number more.
const fn shape(prefix: &'static str, least: usize, of: Class, hidden: Class) -> TokenShape {
    TokenShape { prefix: prefix.as_bytes(), least, of, hidden, is_word: false, is_exact: false }
}

// The prefix must begin a word, and `least` bytes follow: ordinary words begin with `SK` or `re_`, too.
const fn strict(prefix: &'static str, least: usize, of: Class) -> TokenShape {
    TokenShape { prefix: prefix.as_bytes(), least, of, hidden: of, is_word: true, is_exact: true }
}

// Each row has the prefixes of shapes that are alike, with spaces between them.
const FAMILIES: &[TokenShape] = &[
    // GitHub (36 characters today, up to 255 announced); those of applications may carry a JSON Web Token:
    // https://github.blog/changelog/2021-03-31-authentication-token-format-updates-are-generally-available/
    shape("ghp_ gho_ ghu_ ghr_", 30, Class::Word, Class::Word),
    shape("ghs_", 30, Class::Word, Class::Dotted),
    shape("github_pat_", 22, Class::Word, Class::Word),
    // https://docs.gitlab.com/security/tokens/#token-prefixes (20 characters, longer with routing)
    shape("glpat- gloas- gldt- glrt- glrtr- glcbt- glptt- glft- glffct- glimt-", 20, Class::Dashed, Class::Dotted),
    shape("glagent- glsoat- glwt-", 20, Class::Dashed, Class::Dotted),
    shape("GR1348941", 20, Class::Dashed, Class::Dashed),
    // Atlassian and Bitbucket: https://support.atlassian.com/atlassian-account/docs/manage-api-tokens-for-your-atlassian-account/
    shape("ATATT3 ATCTT3 ATSTT3", 20, Class::Dashed, Class::Base64Url),
    strict("ATBB", 24, Class::Alnum).open(),
    shape("BBDC-", 40, Class::Base64, Class::Base64),
    strict("ATTA", 60, Class::Alnum).open(),
    // https://api.slack.com/concepts/token-types
    shape("xoxa- xoxb- xoxc- xoxp- xoxr- xoxs- xoxe- xoxe.xox xapp-", 10, Class::Dashed, Class::Dashed),
    shape("xoxd-", 10, Class::Dashed, Class::Token68),
    shape("hooks.slack.com/services/ hooks.slack.com/workflows/", 20, Class::Base64, Class::Base64),
    shape("hooks.slack.com/triggers/", 20, Class::Base64, Class::Base64),
    // Webhooks of Discord and Teams: who has the address may post.
    shape("discord.com/api/webhooks/ discordapp.com/api/webhooks/ webhook.office.com/", 40, Class::Path, Class::Path),
    // https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_identifiers.html#identifiers-unique-ids (16 follow)
    strict("AKIA ASIA ABIA ACCA", 16, Class::Upper),
    strict("ABSK", 60, Class::Base64).open(),
    shape("bedrock-api-key-", 20, Class::Base64, Class::Base64),
    // https://cloud.google.com/docs/authentication/api-keys (39 characters), and OAuth
    strict("AIza", 35, Class::Dashed),
    shape("ya29.", 20, Class::Dashed, Class::Dotted),
    shape("GOCSPX-", 20, Class::Dashed, Class::Dashed),
    strict("1//0", 30, Class::Dashed).open(),
    strict("GOOG1E", 40, Class::Alnum).open(),
    // https://docs.stripe.com/keys; webhooks of Stripe and Svix; Square, Razorpay, PayPal, Plaid
    shape("sk_live_ rk_live_ sk_test_ rk_test_ sk_prod_ rk_prod_", 10, Class::Alnum, Class::Word),
    shape("sk_org_", 20, Class::Word, Class::Word),
    shape("whsec_", 20, Class::Base64, Class::Base64),
    shape("sq0atp- sq0csp-", 20, Class::Dashed, Class::Dashed),
    strict("EAAA", 56, Class::Dashed).open(),
    shape("rzp_live_ rzp_test_", 14, Class::Alnum, Class::Alnum),
    shape("access_token$production$ access_token$sandbox$", 20, Class::Dollar, Class::Dollar),
    shape("access-sandbox- access-development- access-production-", 30, Class::Dashed, Class::Dashed),
    shape("FLWSECK", 12, Class::Dashed, Class::Dashed),
    // Registries of packages: https://github.blog/2021-09-23-announcing-npms-new-access-token-format/ (36 characters),
    // https://pypi.org/help/#apitoken (a macaroon, whose first bytes are these in base64), crates.io, RubyGems, NuGet, Clojars, JFrog
    shape("npm_", 36, Class::Alnum, Class::Alnum),
    shape("pypi-AgE", 16, Class::Dashed, Class::Dashed),
    strict("cio", 32, Class::Alnum),
    shape("rubygems_", 40, Class::Hex, Class::Hex),
    strict("oy2", 43, Class::Alnum),
    shape("CLOJARS_", 50, Class::Alnum, Class::Alnum),
    strict("AKCp", 60, Class::Alnum).open(),
    shape("cmVmdGtuO", 40, Class::Base64, Class::Base64),
    shape("dckr_pat_ dckr_oat_", 20, Class::Dashed, Class::Dashed),
    // https://platform.claude.com/docs/en/api/overview, https://platform.openai.com/docs/api-reference/authentication, and other models
    shape("sk-ant- sk-proj- sk-svcacct- sk-admin-", 16, Class::Dashed, Class::Dashed),
    shape("sk-or-v1-", 32, Class::Hex, Class::Hex),
    shape("sk-lf-", 30, Class::Dashed, Class::Dashed),
    // Only at the beginning of a word: `task-` and `disk-` end with it.
    TokenShape { prefix: b"sk-", least: 32, of: Class::Alnum, hidden: Class::Dashed, is_word: true, is_exact: false },
    shape("hf_ api_org_", 30, Class::Alnum, Class::Alnum),
    shape("gsk_ pplx- csk-", 40, Class::Alnum, Class::Alnum),
    shape("xai-", 60, Class::Alnum, Class::Alnum),
    shape("nvapi- jina_", 40, Class::Dashed, Class::Dashed),
    strict("r8_", 37, Class::Alnum),
    shape("lsv2_pt_ lsv2_sk_", 32, Class::Word, Class::Word),
    shape("tvly-", 28, Class::Dashed, Class::Dashed),
    shape("e2b_", 36, Class::Hex, Class::Hex),
    strict("sk_", 48, Class::Hex),
    // HashiCorp, Doppler, Pulumi, 1Password, age, Infisical
    shape("hvs. hvb. hvr.", 20, Class::Dashed, Class::Dashed),
    shape(".atlasv1.", 40, Class::Dashed, Class::Dashed),
    shape("dp.pt. dp.ct. dp.sa. dp.scim. dp.audit.", 30, Class::Alnum, Class::Alnum),
    shape("dp.st.", 30, Class::Dashed, Class::Dotted),
    strict("pul-", 40, Class::Hex),
    shape("ops_eyJ", 60, Class::Dashed, Class::Base64Url),
    shape("AGE-SECRET-KEY-1", 50, Class::Upper, Class::Upper),
    // Clouds and hosts: DigitalOcean, Databricks, Fly.io, Netlify, Supabase, Neon, PlanetScale, Cloudflare, Heroku, Render, Tailscale,
    // Scalingo, Dynatrace, OpenShift, Alibaba, Yandex
    shape("dop_v1_ doo_v1_ dor_v1_ sbp_", 40, Class::Hex, Class::Hex),
    strict("dapi", 32, Class::Hex).dashed(),
    shape("fm1a_ fm1r_ fm2_", 30, Class::Base64, Class::Base64),
    shape("fo1_ tk-us- sha256~", 40, Class::Dashed, Class::Dashed),
    shape("nfp_", 36, Class::Alnum, Class::Alnum),
    shape("sb_secret_ tskey-", 20, Class::Dashed, Class::Dashed),
    shape("napi_", 40, Class::Alnum, Class::Alnum),
    shape("pscale_tkn_ pscale_pw_ pscale_oauth_", 30, Class::Dashed, Class::Dotted),
    strict("v1.0-", 100, Class::Dashed).open(),
    shape("HRKU-", 30, Class::Dashed, Class::Dashed),
    strict("rnd_", 28, Class::Alnum).open(),
    shape("dt0c01. dt0s16.", 40, Class::Dotted, Class::Dotted),
    strict("LTAI", 16, Class::Alnum).open(),
    strict("AQVN", 35, Class::Dashed).open(),
    strict("y0_", 40, Class::Dashed).open(),
    // Monitoring: Grafana, New Relic, Sentry, Sonar, Snyk
    shape("glsa_", 32, Class::Word, Class::Word),
    shape("glc_", 32, Class::Base64, Class::Base64),
    shape("eyJrIjoi", 60, Class::Base64, Class::Base64),
    shape("NRAK-", 27, Class::Alnum, Class::Alnum),
    shape("NRIQ- NRII-", 27, Class::Dashed, Class::Dashed),
    shape("NRJS-", 19, Class::Hex, Class::Hex),
    shape("NRRA-", 40, Class::Hex, Class::Hex),
    shape("sntrys_", 30, Class::Base64, Class::Token68),
    shape("sntryu_", 60, Class::Hex, Class::Hex),
    strict("sqp_ squ_ sqa_", 40, Class::Hex),
    // Continuous integration: Buildkite, CircleCI, Harness, Octopus, Prefect
    shape("bkua_", 40, Class::Hex, Class::Hex),
    shape("CCIPAT_ CCIPRJ_", 40, Class::Word, Class::Word),
    strict("API-", 26, Class::Upper),
    shape("pnu_", 36, Class::Alnum, Class::Alnum),
    // Mail and messages: SendGrid, Mailgun, Brevo, Resend, Twilio
    shape("SG.", 50, Class::Dotted, Class::Dotted),
    strict("key- SK", 32, Class::Hex),
    shape("xkeysib- xsmtpsib-", 60, Class::Dashed, Class::Dashed),
    strict("re_", 32, Class::Word).open(),
    // Tools of teams: Linear, Notion, Figma, Shopify, HubSpot, Postman, Typeform, Contentful, EasyPost, ReadMe, Sourcegraph
    shape("lin_api_ lin_oauth_", 30, Class::Alnum, Class::Alnum),
    shape("ntn_", 40, Class::Alnum, Class::Alnum),
    strict("secret_", 43, Class::Alnum),
    shape("figd_ figo_ pat-na1- pat-eu1-", 30, Class::Dashed, Class::Dashed),
    shape("shpat_ shpca_ shppa_ shpss_", 32, Class::Hex, Class::Alnum),
    shape("PMAK-", 50, Class::Dashed, Class::Dashed),
    shape("tfp_", 40, Class::Dashed, Class::Dotted),
    shape("CFPAT-", 40, Class::Dashed, Class::Dashed),
    strict("EZAK EZTK", 54, Class::Alnum),
    shape("rdme_", 60, Class::Alnum, Class::Alnum),
    shape("sgp_", 40, Class::Word, Class::Word),
];

pub(super) static SHAPES: [TokenShape; COUNT] = all().0;

const COUNT: usize = all::<0>().1;

/// The shapes of all families, as many as there is room for, and how many there are.
const fn all<const ROOM: usize>() -> ([TokenShape; ROOM], usize) {
    let (mut all, mut count, mut family) = ([FAMILIES[0]; ROOM], 0, 0);
    while family < FAMILIES.len() {
        let words = FAMILIES[family].prefix;
        let (mut from, mut to) = (0, 0);
        while to <= words.len() {
            if to == words.len() || words[to] == b' ' {
                if count < ROOM {
                    all[count] = TokenShape { prefix: words.split_at(to).0.split_at(from).1, ..FAMILIES[family] };
                }
                (count, from) = (count + 1, to + 1);
            }
            to += 1;
        }
        family += 1;
    }
    (all, count)
}

/// The shapes that begin with a byte.
pub(super) fn shapes(first: u8) -> impl Iterator<Item = &'static TokenShape> {
    let (order, from) = &ORDER;
    let first = usize::from(first);
    order[from[first]..from[first + 1]].iter().map(|at| &SHAPES[*at])
}

/// The places of the shapes in the order of their first bytes, and where each first byte begins.
static ORDER: ([usize; SHAPES.len()], [usize; 257]) = order();

const fn order() -> ([usize; SHAPES.len()], [usize; 257]) {
    // The shapes are sorted by their first byte at compile time, so that only those of one byte are compared at a place.
    // The list has one more entry than there are bytes: the shapes of a byte end where those of the next one begin.
    let (mut order, mut from) = ([0; SHAPES.len()], [0; 257]);
    let (mut first, mut count) = (0, 0);
    while first < 256 {
        from[first] = count;
        let mut at = 0;
        while at < SHAPES.len() {
            if SHAPES[at].prefix[0] as usize == first {
                order[count] = at;
                count += 1;
            }
            at += 1;
        }
        first += 1;
    }
    from[256] = count;
    (order, from)
}
