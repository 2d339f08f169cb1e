-- SPDX-License-Identifier: MIT
--
-- What of a page is its content, and what is not.

local html = require "batch.html"

local PARAGRAPH = ("Words that somebody wrote to be read by somebody else. "):rep(6)
local SHOWN = PARAGRAPH:gsub(" $", "")

local function markdown(source)
    return assert(html.read(source, "https://example.org/")):markdown()
end

local function assert_content(expected, source)
    assert.same(expected .. "\n", markdown(source))
end

describe("main content", function()
    it("is <main>, role=main or the one <article>", function()
        for _, frame in ipairs {
            "<main>%s</main>", "<div role=main>%s</div>", "<div><article>%s</article></div>",
        } do
            local page = "<div>Shop now</div>" .. frame:format("<p>" .. PARAGRAPH) .. "<p>Bye"
            assert_content(SHOWN, page)
        end
    end)

    it("takes all articles where there are several", function()
        local article = "<article><p>" .. PARAGRAPH .. "</article>"
        assert_content(SHOWN .. "\n\n" .. SHOWN, article .. article)
    end)

    it("is the part with the text where no element says so", function()
        local menu = "<ul><li><a href=/a>One</a><li><a href=/b>Two</a><li><a href=/c>Three</a></ul>"
        local page = "<table><tr><td>" .. menu .. "<td><h1>T</h1><p>" .. PARAGRAPH .. "</table>"
        assert_content("# T\n\n" .. SHOWN, page)
        assert_content("# T\n\n" .. SHOWN,
            "<div>" .. menu .. "<h1>T</h1><p>" .. PARAGRAPH .. "</p>" .. menu .. "</div>")
    end)

    it("has no menu beside the text of a page that is laid out in tables", function()
        local menu = "<table><tr><th>Menu"
            .. "<tr><td><a href=/a>A page</a> <a href=/b>Another</a></table>"
        assert_content("## T\n\n" .. SHOWN, "<table><tr><td><h2>T</h2></table><table><tr><td>"
            .. menu .. "<td><p>" .. PARAGRAPH .. "</table>")
        assert_content("| See | Text |\n| --- | --- |\n| [One](https://example.org/a) | " .. SHOWN
            .. " |", "<table><tr><th>See<th>Text<tr><td><a href=/a>One</a><td>" .. PARAGRAPH
            .. "</table>")
    end)

    it("keeps a title that stands before it, and lists of links under a heading", function()
        local menu = "<ul><li><a href=/a>One</a><li><a href=/b>Two</a></ul>"
        assert_content("# T\n\n" .. SHOWN .. "\n\n## See\n\n- [One](https://example.org/a)\n" ..
            "- [Two](https://example.org/b)",
            "<h1>T</h1><div><p>" .. PARAGRAPH .. "<h2>See</h2>" .. menu .. "</div>")
    end)

    it("leaves out navigation, footers, asides, forms and banners", function()
        for _, extra in ipairs {
            "<nav>Home</nav>", "<footer>Imprint</footer>", "<aside>More</aside>",
            "<header>Logo</header>", "<div role=navigation>Home</div>",
            "<form>Mail <input name=m><button>Go</button></form>",
            "<div id=cookie-banner>We use cookies <button>OK</button></div>",
            "<div class='gdpr consent'>Accept all?</div>", "<dialog>Log in</dialog>",
            "<div class=breadcrumbs><a href=/>Home</a></div>", "<div class=sidebar>Ads</div>",
            "<ul class='nav navbar'><li>a</ul>", "<div class=share>Tweet</div>",
            "<select><option>German</select>", "<textarea>x</textarea>",
        } do
            assert_content(SHOWN, "<p>" .. PARAGRAPH .. "</p>" .. extra)
        end
    end)

    it("leaves out a cookie banner that is most of a short page, but not all of one", function()
        for _, name in ipairs {
            "class=cookie-banner", "id=onetrust-banner-sdk", "class=CookieBanner",
            "class='gdpr notice'", "class=cookieConsent__wrap", "id=cookie_bar",
        } do
            local banner = "<div " .. name .. "><p>We use cookies.</p></div>"
            assert_content("Short page.", banner .. "<main><p>Short page.</p></main>")
            assert_content("Short page.", "<p>Short page.</p>" .. banner)
            assert_content("We use cookies.", banner)
        end
    end)

    it("leaves out what is not shown", function()
        for _, extra in ipairs {
            "<script>run()</script>", "<style>p{}</style>", "<template><p>t</p></template>",
            "<noscript><p>Enable</noscript>", "<p hidden>h</p>", "<p aria-hidden=true>h</p>",
            "<p style='color: red; display : none'>h</p>", "<p style='VISIBILITY:hidden'>h</p>",
            "<svg><text>s</text></svg>", "<!-- c -->", "<iframe src=x>i</iframe>",
            "<video>v</video>", "<object>o</object>",
        } do
            assert_content(SHOWN, "<p>" .. PARAGRAPH .. "</p>" .. extra)
        end
    end)

    it("keeps what only looks like that", function()
        for _, kept in ipairs {
            "<section id=cookies><h2>T</h2>" .. PARAGRAPH .. "</section>",
            "<aside class='admonition note'><h2>T</h2>" .. PARAGRAPH .. "</aside>",
            "<article><header><h2>T</h2></header>" .. PARAGRAPH .. "</article>",
            "<form><h2>T</h2><div>" .. PARAGRAPH .. "</div></form>",
            "<div class=navigation><h2>T</h2>" .. PARAGRAPH .. "</div>",
        } do
            assert_content("## T\n\n" .. SHOWN, kept)
        end
    end)

    it("is a list of links where a page has nothing else", function()
        local links = "<li><a href=/a>One</a><li><a href=/b>Two</a>"
        for _, frame in ipairs { "<ul>%s</ul>", "<nav><ul>%s</ul></nav>",
            "<div class=menu><ul>%s</ul></div>" } do
            assert_content("- [One](https://example.org/a)\n- [Two](https://example.org/b)",
                frame:format(links))
        end
    end)

    it("is what a script would have shown where nothing else is there", function()
        assert_content("Hello", "<div style='display:none'>Hello</div><script>show()</script>")
        assert_content("No script", "<noscript>No script</noscript>")
    end)
end)
